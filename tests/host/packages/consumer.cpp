// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A program that somebody else builds with libmrscope-dev.

#include <mrscope.h>
#include <mrscope/environment.h>
#include <mrscope/explain.h>
#include <mrscope/record_session.h>

#include <iostream>

int main() { std::cout << mrscope::Version() << '\n'; }
