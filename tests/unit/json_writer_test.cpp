// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "mrscope/json_writer.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <random>
#include <sstream>

namespace mrscope {
namespace {

std::string Quoted(std::string_view text) {
  std::ostringstream out;
  JsonWriter json(out);
  json.Value(text);
  json.Flush();
  return out.str();
}

TEST(JsonWriterTest, WritesNestedValues) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginObject();
  json.Member("a", 1);
  json.Key("b");
  json.BeginArray();
  json.Value(true);
  json.Null();
  json.NewLine();
  json.Value("x");
  json.BeginObject();
  json.EndObject();
  json.EndArray();
  json.Member("c", std::optional<int>());
  json.Hex("d", 0x1fU);
  json.Hex("e", std::nullopt);
  json.Member("f", std::vector<std::string>{"p", "q"});
  json.Member("g", Nanoseconds(5));
  json.EndObject();
  json.Flush();
  const auto parsed = nlohmann::json::parse(out.str());
  EXPECT_EQ(parsed, nlohmann::json::parse(
                        R"({"a":1,"b":[true,null,"x",{}],"c":null,"d":"0x1f","e":null,
                            "f":["p","q"],"g":5})"));
}

TEST(JsonWriterTest, EscapesWhatJsonForbids) {
  EXPECT_EQ(Quoted("a\"b\\c\n\x01"), R"("a\"b\\c\u000a\u0001")");
  EXPECT_EQ(Quoted("µ√😀"), "\"µ√😀\"");
}

TEST(JsonWriterTest, ReplacesWhatIsNotUtf8) {
  EXPECT_EQ(Quoted("a\xff"), "\"a\\ufffd\"");
  EXPECT_EQ(Quoted("\xc0\x80"), "\"\\ufffd\\ufffd\"");
  EXPECT_EQ(Quoted("\xed\xa0\x80"), "\"\\ufffd\\ufffd\\ufffd\"");
  EXPECT_EQ(Quoted("\xe2\x82"), "\"\\ufffd\\ufffd\"");
}

// A comm is any 15 bytes: the document must stay valid.
TEST(JsonWriterTest, AnyBytesGiveValidJson) {
  std::mt19937_64 random(3);
  for (int round = 0; round < 5000; ++round) {
    std::string text;
    for (std::size_t i = random() % 16; i > 0; --i) text += static_cast<char>(random());
    EXPECT_TRUE(nlohmann::json::accept(Quoted(text)));
  }
}

TEST(JsonWriterTest, NonFiniteNumbersAreNull) {
  std::ostringstream out;
  JsonWriter json(out);
  json.BeginArray();
  json.Value(0.5);
  json.Value(std::numeric_limits<double>::infinity());
  json.EndArray();
  json.Flush();
  EXPECT_EQ(out.str(), "[0.5,null]");
}

}  // namespace
}  // namespace mrscope
