// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/json_writer.h"

#include <fmt/format.h>

#include <cmath>

namespace mrscope {
namespace {

constexpr std::size_t kFlushAt = 65536;

// Length of the UTF-8 character at the start of `text`, 0 if it is none.
std::size_t Utf8Length(std::string_view text) {
  const auto byte = [&](std::size_t i) { return static_cast<unsigned char>(text[i]); };
  std::size_t length = 0;
  if (byte(0) < 0x80) {
    length = 1;
  } else if (byte(0) >= 0xc2 && byte(0) < 0xe0) {
    length = 2;
  } else if (byte(0) >= 0xe0 && byte(0) < 0xf0) {
    length = 3;
  } else if (byte(0) >= 0xf0 && byte(0) < 0xf5) {
    length = 4;
  }
  if (length == 0 || length > text.size()) return 0;
  for (std::size_t i = 1; i < length; ++i) {
    if ((byte(i) & 0xc0) != 0x80) return 0;
  }
  // Overlong forms, surrogates, and what lies beyond U+10FFFF.
  if (length == 3 && byte(0) == 0xe0 && byte(1) < 0xa0) return 0;
  if (length == 3 && byte(0) == 0xed && byte(1) >= 0xa0) return 0;
  if (length == 4 && byte(0) == 0xf0 && byte(1) < 0x90) return 0;
  if (length == 4 && byte(0) == 0xf4 && byte(1) >= 0x90) return 0;
  return length;
}

}  // namespace

void JsonWriter::Separate() {
  if (after_key_) {
    after_key_ = false;
    return;
  }
  if (need_comma_) buffer_ += ',';
  if (new_line_) buffer_ += '\n';
  new_line_ = false;
}

void JsonWriter::Raw(std::string_view text) {
  Separate();
  buffer_ += text;
  need_comma_ = true;
  if (buffer_.size() >= kFlushAt) Flush();
}

void JsonWriter::Open(char bracket) {
  Separate();
  buffer_ += bracket;
  need_comma_ = false;
}

void JsonWriter::Close(char bracket) {
  if (new_line_) buffer_ += '\n';
  new_line_ = false;
  buffer_ += bracket;
  need_comma_ = true;
}

void JsonWriter::Key(std::string_view key) {
  Separate();
  AppendQuoted(key);
  buffer_ += ": ";
  need_comma_ = true;
  after_key_ = true;
}

void JsonWriter::Value(std::string_view text) {
  Separate();
  AppendQuoted(text);
  need_comma_ = true;
}

void JsonWriter::Value(double value) {
  if (std::isfinite(value)) {
    Raw(fmt::format("{}", value));
  } else {
    Null();
  }
}

void JsonWriter::AppendQuoted(std::string_view text) {
  buffer_ += '"';
  while (!text.empty()) {
    const char c = text.front();
    const std::size_t length = Utf8Length(text);
    if (length == 0) {
      buffer_ += "\\ufffd";
      text.remove_prefix(1);
      continue;
    }
    if (c == '"' || c == '\\') {
      buffer_ += '\\';
      buffer_ += c;
    } else if (static_cast<unsigned char>(c) < 0x20) {
      buffer_ += fmt::format("\\u{:04x}", static_cast<unsigned>(c));
    } else {
      buffer_ += text.substr(0, length);
    }
    text.remove_prefix(length);
  }
  buffer_ += '"';
}

void JsonWriter::Hex(std::string_view key, std::optional<std::uint64_t> value) {
  Key(key);
  if (value) {
    Value(fmt::format("{:#x}", *value));
  } else {
    Null();
  }
}

void JsonWriter::Flush() {
  out_.write(buffer_.data(), static_cast<std::streamsize>(buffer_.size()));
  buffer_.clear();
}

}  // namespace mrscope
