/* c10::OutOfMemoryError, in outline: c10/util/Exception.h of PyTorch 2.11. */
#ifndef FL_TESTS_GPU_FAKE_C10_HPP
#define FL_TESTS_GPU_FAKE_C10_HPP

#include <cstdint>
#include <exception>
#include <string>
#include <vector>

namespace c10
{
struct SourceLocation {
    const char *function;
    const char *file;
    uint32_t line;
};
class __attribute__((visibility("default"))) Error : public std::exception
{
    std::string msg_;
    std::vector<std::string> context_;
    std::string whole_;

  public:
    Error(SourceLocation at, std::string msg);
    Error(const Error &e);
    ~Error() override;
    const char *what() const noexcept override;
};
class __attribute__((visibility("default"))) OutOfMemoryError : public Error
{
    using Error::Error;
};
extern __attribute__((visibility("default"))) int errors; /* that are there now */
} // namespace c10

#endif
