// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "schema.h"

#include <fstream>
#include <map>
#include <regex>
#include <stdexcept>

namespace mrscope::test {
namespace {

using nlohmann::json;

class Checker {
 public:
  void Check(const json& value, const json& schema, const std::string& file,
             const std::string& where);
  std::vector<std::string> TakeProblems() { return std::move(problems_); }
  const json& Load(const std::string& file);

 private:
  void CheckReference(const json& value, const std::string& reference, const std::string& file,
                      const std::string& where);
  void CheckObject(const json& value, const json& schema, const std::string& file,
                   const std::string& where);
  void Problem(const std::string& where, const std::string& what) {
    problems_.push_back(where + ": " + what);
  }

  std::map<std::string, json> files_;
  std::vector<std::string> problems_;
};

bool HasType(const json& value, const std::string& type) {
  if (type == "null") return value.is_null();
  if (type == "object") return value.is_object();
  if (type == "array") return value.is_array();
  if (type == "string") return value.is_string();
  if (type == "boolean") return value.is_boolean();
  if (type == "integer") return value.is_number_integer();
  if (type == "number") return value.is_number();
  throw std::logic_error("unknown type in a schema: " + type);
}

bool HasAnyType(const json& value, const json& types) {
  if (types.is_string()) return HasType(value, types);
  return std::any_of(types.begin(), types.end(),
                     [&](const json& type) { return HasType(value, type); });
}

const json& Checker::Load(const std::string& file) {
  auto found = files_.find(file);
  if (found == files_.end()) {
    std::ifstream in(std::string(SCHEMA_DIR) + "/" + file);
    if (!in) throw std::runtime_error("no schema " + file);
    found = files_.emplace(file, json::parse(in)).first;
  }
  return found->second;
}

// "file.json#/$defs/x", where an empty file is this one.
void Checker::CheckReference(const json& value, const std::string& reference,
                             const std::string& file, const std::string& where) {
  const auto hash = reference.find('#');
  const std::string target = hash == 0 ? file : reference.substr(0, hash);
  const std::string pointer = hash == std::string::npos ? "" : reference.substr(hash + 1);
  Check(value, Load(target).at(json::json_pointer(pointer)), target, where);
}

void Checker::CheckObject(const json& value, const json& schema, const std::string& file,
                          const std::string& where) {
  for (const auto& name : schema.value("required", json::array())) {
    if (!value.contains(name)) Problem(where, "has no " + name.get<std::string>());
  }
  const json properties = schema.value("properties", json::object());
  for (const auto& [name, member] : value.items()) {
    std::string inside = where;
    inside.append("/").append(name);
    if (properties.contains(name)) {
      Check(member, properties.at(name), file, inside);
    } else if (schema.contains("additionalProperties")) {
      Check(member, schema.at("additionalProperties"), file, inside);
    } else {
      Problem(where, "the schema does not know " + name);
    }
  }
}

void Checker::Check(const json& value, const json& schema, const std::string& file,
                    const std::string& where) {
  if (schema.contains("$ref")) CheckReference(value, schema.at("$ref"), file, where);
  if (schema.contains("type") && !HasAnyType(value, schema.at("type"))) {
    Problem(where, "has another type than " + schema.at("type").dump());
    return;
  }
  if (schema.contains("anyOf")) {
    for (const auto& choice : schema.at("anyOf")) {
      Checker one;
      one.Check(value, choice, file, where);
      if (one.TakeProblems().empty()) return;
    }
    Problem(where, "is none of what it may be: " + value.dump().substr(0, 200));
    return;
  }
  if (schema.contains("const") && value != schema.at("const"))
    Problem(where, "is another constant");
  if (schema.contains("enum")) {
    const auto& values = schema.at("enum");
    if (std::find(values.begin(), values.end(), value) == values.end()) {
      Problem(where, "is not in the list: " + value.dump());
    }
  }
  if (schema.contains("pattern") && value.is_string() &&
      !std::regex_search(value.get<std::string>(), std::regex(std::string(schema.at("pattern"))))) {
    Problem(where, "does not look right: " + value.dump());
  }
  if (schema.contains("minimum") && value.is_number() && value < schema.at("minimum")) {
    Problem(where, "is too small");
  }
  if (value.is_array() && schema.contains("items")) {
    for (std::size_t i = 0; i < value.size(); ++i) {
      Check(value[i], schema.at("items"), file, where + "/" + std::to_string(i));
    }
  }
  if (value.is_object() && schema.contains("type") && !schema.contains("$ref")) {
    CheckObject(value, schema, file, where);
  }
}

}  // namespace

std::vector<std::string> CheckSchema(const nlohmann::json& document,
                                     const std::string& schema_file) {
  Checker checker;
  checker.Check(document, checker.Load(schema_file), schema_file, "");
  return checker.TakeProblems();
}

}  // namespace mrscope::test
