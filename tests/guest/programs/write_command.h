// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Verbs by write(2), as libraries asked for them before there was an ioctl.
// The bodies are those of rdma/ib_user_verbs.h without the array of no length
// at their end, which C++ does not know.

#ifndef TESTS_GUEST_WRITE_COMMAND_H_
#define TESTS_GUEST_WRITE_COMMAND_H_

#include <rdma/ib_user_verbs.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>

struct RegMrBody {
  std::uint64_t response = 0, start = 0, length = 0, hca_va = 0;
  std::uint32_t pd_handle = 0, access_flags = 0;
};

struct ReregMrBody {
  std::uint64_t response = 0;
  std::uint32_t mr_handle = 0, flags = 0;
  std::uint64_t start = 0, length = 0, hca_va = 0;
  std::uint32_t pd_handle = 0, access_flags = 0;
};

struct DeregMrBody {
  std::uint32_t mr_handle = 0;
};

// 0 or an errno.
template <typename Body>
int WriteCommand(int fd, unsigned command, const Body& body, std::size_t answer_bytes) {
  struct {
    ib_uverbs_cmd_hdr header;
    Body body;
  } message{};
  static_assert(sizeof message == sizeof message.header + sizeof body);
  constexpr std::size_t kWord = 4;
  message.header.command = command;
  message.header.in_words = sizeof message / kWord;
  message.header.out_words = static_cast<std::uint16_t>(answer_bytes / kWord);
  message.body = body;
  return write(fd, &message, sizeof message) == sizeof message ? 0 : errno;
}

#endif  // TESTS_GUEST_WRITE_COMMAND_H_
