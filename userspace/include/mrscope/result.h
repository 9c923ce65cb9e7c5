// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// What can fail in normal use returns a Result; exceptions are for programming
// errors only.

#ifndef MRSCOPE_RESULT_H_
#define MRSCOPE_RESULT_H_

#include <stdexcept>
#include <string>
#include <utility>
#include <variant>

namespace mrscope {

enum class ErrorKind {
  kFailed,        // what was asked for failed
  kUsage,         // what was asked for makes no sense
  kPrerequisite,  // the host lacks something; the message says the remedy
  kInterrupted,   // a signal asked to stop; code is its number
};

struct Error {
  ErrorKind kind = ErrorKind::kFailed;
  int code = 0;         // errno, or 0 where there is none
  std::string message;  // one sentence for a person, without newline
};

template <typename T>
class [[nodiscard]] Result {
 public:
  Result(T value) : state_(std::move(value)) {}      // NOLINT(google-explicit-constructor)
  Result(Error error) : state_(std::move(error)) {}  // NOLINT(google-explicit-constructor)

  bool ok() const { return std::holds_alternative<T>(state_); }
  explicit operator bool() const { return ok(); }

  // Asking an error for its value, or a value for its error, is a bug.
  T& value() & { return Checked(); }
  const T& value() const& { return const_cast<Result*>(this)->Checked(); }
  T&& value() && { return std::move(Checked()); }
  T& operator*() & { return Checked(); }
  T&& operator*() && { return std::move(Checked()); }
  const T& operator*() const& { return value(); }
  T* operator->() { return &Checked(); }
  const T* operator->() const { return &value(); }

  const Error& error() const {
    if (const Error* error = std::get_if<Error>(&state_)) return *error;
    throw std::logic_error("Result holds a value, not an error");
  }

 private:
  T& Checked() {
    if (T* value = std::get_if<T>(&state_)) return *value;
    throw std::logic_error("Result holds an error: " + std::get<Error>(state_).message);
  }

  std::variant<T, Error> state_;
};

template <>
class [[nodiscard]] Result<void> {
 public:
  Result() = default;
  Result(Error error) : error_(std::move(error)), ok_(false) {}  // NOLINT

  bool ok() const { return ok_; }
  explicit operator bool() const { return ok_; }
  const Error& error() const {
    if (!ok_) return error_;
    throw std::logic_error("Result holds no error");
  }

 private:
  Error error_;
  bool ok_ = true;
};

}  // namespace mrscope

#endif  // MRSCOPE_RESULT_H_
