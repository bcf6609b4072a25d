"""What the programs of these tests expect of an error."""
import contextlib


@contextlib.contextmanager
def raises(kind, words):
    """What is within raises that, and says so."""
    try:
        yield
    except kind as e:
        assert words in str(e), e
    else:
        raise AssertionError(f"no {kind.__name__}")
