/* As libc10.so has it: an exception class with a constructor that is exported, of a size that only
 * the library knows. With FL_FAKE_C10_CUDA as libc10_cuda.so has it: the table of the class that is
 * no more than that one, which is defined in a header. */
#include "gpu/fake_c10.hpp"

#ifdef FL_FAKE_C10_CUDA
namespace c10
{
__attribute__((visibility("default"))) void raise_out_of_memory();
void raise_out_of_memory()
{
    throw OutOfMemoryError({"somewhere", "a file", 1}, "out of memory");
}
} // namespace c10
#else
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
int errors;
} // namespace c10
#endif
