// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Parts of a JSON document by path: names separated by dots, each followed by
// [*] (all elements of an array), [N], or [KEY=VALUE] (those that have it); "."
// is the whole document. What is not there is null.

#ifndef TESTS_GUEST_JSON_PATH_H_
#define TESTS_GUEST_JSON_PATH_H_

#include <fstream>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <vector>

using Json = nlohmann::ordered_json;
using Selection = std::vector<const Json*>;

inline const Json kNull;

// Scalars plain, arrays of them joined by commas, other things JSON.
inline std::string Text(const Json& value) {
  if (value.is_string()) return value.get<std::string>();
  if (!value.is_array()) return value.dump();
  std::string text;
  for (const Json& element : value) {
    if (element.is_structured()) return value.dump();
    if (!text.empty()) text += ',';
    text += Text(element);
  }
  return text;
}

inline const Json& Member(const Json& value, const std::string& name) {
  if (!value.is_object() || !value.contains(name)) return kNull;
  return value.at(name);
}

inline Selection Elements(const Selection& from, const std::string& which) {
  Selection selected;
  const auto equals = which.find('=');
  for (const Json* array : from) {
    if (!array->is_array()) continue;
    for (std::size_t i = 0; i < array->size(); ++i) {
      const Json& element = array->at(i);
      if (equals != std::string::npos
              ? Text(Member(element, which.substr(0, equals))) == which.substr(equals + 1)
              : which == "*" || which == std::to_string(i)) {
        selected.push_back(&element);
      }
    }
  }
  return selected;
}

inline Selection Step(const Selection& from, std::string_view step) {
  const std::string name(step.substr(0, step.find('[')));
  step.remove_prefix(name.size());
  Selection selected;
  for (const Json* value : from) selected.push_back(name.empty() ? value : &Member(*value, name));
  while (!step.empty()) {
    const auto end = step.find(']');
    selected = Elements(selected, std::string(step.substr(1, end - 1)));
    step.remove_prefix(end == std::string_view::npos ? step.size() : end + 1);
  }
  return selected;
}

inline Selection Select(const Json& root, std::string_view path) {
  Selection selected{&root};
  while (!path.empty()) {
    const auto dot = path.find('.');
    selected = Step(selected, path.substr(0, dot));
    path.remove_prefix(dot == std::string_view::npos ? path.size() : dot + 1);
  }
  return selected;
}

// Throws Json::exception where the file is not one valid document.
inline Json ReadJson(const char* path) {
  std::ifstream file(path);
  return Json::parse(file);
}

#endif  // TESTS_GUEST_JSON_PATH_H_
