// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Writes JSON as it goes, so that a hundred thousand records need no document
// in memory.

#ifndef MRSCOPE_JSON_WRITER_H_
#define MRSCOPE_JSON_WRITER_H_

#include <concepts>
#include <cstdint>
#include <optional>
#include <ostream>
#include <string>
#include <string_view>
#include <vector>

#include "mrscope/units.h"

namespace mrscope {

// The caller keeps the nesting right; a missing value is null. Text that is not
// UTF-8 (a comm may hold anything) has its bad bytes replaced by U+FFFD.
class JsonWriter {
 public:
  explicit JsonWriter(std::ostream& out) : out_(out) {}
  JsonWriter(const JsonWriter&) = delete;
  JsonWriter& operator=(const JsonWriter&) = delete;
  ~JsonWriter() { Flush(); }

  void BeginObject() { Open('{'); }
  void EndObject() { Close('}'); }
  void BeginArray() { Open('['); }
  void EndArray() { Close(']'); }
  // The next element starts on a line of its own.
  void NewLine() { new_line_ = true; }

  void Key(std::string_view key);
  void Null() { Raw("null"); }
  void Value(std::string_view text);
  void Value(const char* text) { Value(std::string_view(text)); }
  void Value(const std::string& text) { Value(std::string_view(text)); }
  void Value(bool value) { Raw(value ? "true" : "false"); }
  void Value(Nanoseconds time) { Value(time.count()); }
  void Value(Bytes size) { Value(size.value); }
  void Value(double value);
  template <std::integral T>
  void Value(T value) {
    Raw(std::to_string(value));
  }
  template <typename T>
  void Value(const std::optional<T>& value) {
    if (value) {
      Value(*value);
    } else {
      Null();
    }
  }
  template <typename T>
  void Value(const std::vector<T>& values) {
    BeginArray();
    for (const T& value : values) Value(value);
    EndArray();
  }
  template <typename T>
  void Member(std::string_view key, const T& value) {
    Key(key);
    Value(value);
  }
  // "0x…", or null.
  void Hex(std::string_view key, std::optional<std::uint64_t> value);

  void Flush();

 private:
  void Separate();
  void Raw(std::string_view text);
  void Open(char bracket);
  void Close(char bracket);
  void AppendQuoted(std::string_view text);

  std::ostream& out_;
  std::string buffer_;
  bool need_comma_ = false;
  bool after_key_ = false;
  bool new_line_ = false;
};

}  // namespace mrscope

#endif  // MRSCOPE_JSON_WRITER_H_
