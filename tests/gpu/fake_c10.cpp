/* As libc10.so has it: an exception class with a constructor that is exported, of a size that only
 * the library knows. */
#include "gpu/fake_c10.hpp"

namespace c10
{
Error::Error(SourceLocation at, std::string msg)
    : msg_(std::move(msg)), context_{at.function, at.file}, whole_(msg_ + " from " + at.function)
{
    errors++;
}
Error::Error(const Error &e)
    : std::exception(e), msg_(e.msg_), context_(e.context_), whole_(e.whole_)
{
    errors++;
}
Error::~Error()
{
    errors--;
}
const char *Error::what() const noexcept
{
    return whole_.c_str();
}
OutOfMemoryError::OutOfMemoryError(SourceLocation at, std::string msg) : Error(at, std::move(msg))
{
}
OutOfMemoryError::~OutOfMemoryError() = default;
int errors;
} // namespace c10
