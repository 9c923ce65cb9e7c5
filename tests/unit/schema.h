// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Checks a document against one of docs/schema: the part of JSON Schema that
// those files use, and that every member is documented.

#ifndef MRSCOPE_TESTS_SCHEMA_H_
#define MRSCOPE_TESTS_SCHEMA_H_

#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace mrscope::test {

// What is wrong, one line each; empty where nothing is.
std::vector<std::string> CheckSchema(const nlohmann::json& document,
                                     const std::string& schema_file);

}  // namespace mrscope::test

#endif  // MRSCOPE_TESTS_SCHEMA_H_
