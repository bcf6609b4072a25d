"""Compares test suites by their JUnit reports: no test may fail, go missing or be skipped that was not so before.

    compare_junit.py REFERENCE.xml OTHER.xml       prints the differences; 0: none, 1: some, 2: no report"""
import sys
import xml.etree.ElementTree as tree

MOST_SHOWN = 20  # differences that are no harm


def outcomes(path):
    """Name -> passed, skipped or failed; of a name that comes twice the worst."""
    order = ["passed", "skipped", "failed"]
    found = {}
    for case in tree.parse(path).iter("testcase"):
        tags = {child.tag for child in case}
        outcome = "failed" if tags & {"failure", "error"} else "skipped" if "skipped" in tags else "passed"
        name = f"{case.get('classname') or ''} {case.get('name')}".strip()
        found[name] = max(found.get(name, "passed"), outcome, key=order.index)
    return found


def main():
    try:
        before, after = outcomes(sys.argv[1]), outcomes(sys.argv[2])
    except (OSError, tree.ParseError) as error:
        print(f"no report: {error}")
        return 2
    for name, found in (("reference", before), ("other", after)):
        count = {o: sum(v == o for v in found.values()) for o in ("passed", "failed", "skipped")}
        print(f"{name}: {len(found)} tests, " + ", ".join(f"{n} {o}" for o, n in count.items()))
    worse = 0
    shown = 0
    for name in sorted(before.keys() | after.keys()):
        a, b = before.get(name, "absent"), after.get(name, "absent")
        if a != b:
            # A test that the reference did not come to (its module hung) is worse only when it
            # fails.
            is_worse = b == "failed" if a == "absent" else b != "passed" and a != "failed"
            worse += is_worse
            shown += not is_worse
            if is_worse or shown <= MOST_SHOWN:
                print(f"{'WORSE' if is_worse else 'other'}: {name}: {a} in the reference, {b} in the other")
        elif a == "failed":
            print(f"both failed: {name}")
    if shown > MOST_SHOWN:
        print(f"and {shown - MOST_SHOWN} more that are not worse")
    return 1 if worse else 0


if len(sys.argv) != 3:
    sys.exit(__doc__)
sys.exit(main())
