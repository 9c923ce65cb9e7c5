// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// A user context of mrlab0 without a library: commands of the uverbs ABI, by
// write(2) and by ioctl(2), that are plausible (handles and keys that exist,
// memory that is there), and mutations of these.

#ifndef TESTS_GUEST_FUZZ_CONTEXT_H_
#define TESTS_GUEST_FUZZ_CONTEXT_H_

#include <rdma/ib_user_verbs.h>
#include <rdma/rdma_user_ioctl_cmds.h>

#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "fuzz_arena.h"
#include "fuzz_tally.h"
#include "random.h"

class FuzzContext {
 public:
  // Opens `path`, the character device.
  FuzzContext(const std::string& path, const Arena& arena, Random& random, Tally& tally,
              std::size_t process);
  FuzzContext(const FuzzContext&) = delete;
  FuzzContext& operator=(const FuzzContext&) = delete;
  ~FuzzContext();

  void Step();

  // The names of all kinds, as they are counted.
  static std::vector<std::string> Names();

 private:
  using Bytes = std::vector<std::uint8_t>;
  // To be taken up when it has succeeded, from the answer and what was sent.
  using Done = std::function<void(const Bytes& sent)>;
  struct Command {
    std::uint32_t number = 0;
    bool extended = false;
    Bytes body;              // without headers
    std::size_t answer = 0;  // bytes
    Done done;
  };
  struct Method {
    std::uint16_t object = 0;
    std::uint16_t method = 0;
    std::vector<ib_uverbs_attr> attributes;
    Done done;
  };
  struct Mr {
    std::uint32_t handle;
    std::uint32_t key;
    std::uint64_t address;  // that its first byte has
    std::uint64_t length;
  };
  struct Qp {
    std::uint32_t handle;
    std::uint32_t number;
    std::uint8_t state;
  };
  using Handles = std::vector<std::uint32_t>;

  // A kind of command: its name, how often it is tried, and how it is made.
  struct Kind {
    const char* name;
    unsigned weight;
    void (FuzzContext::*make)(Command&);
    void (FuzzContext::*call)(Method&);
    std::uint32_t number;  // where neither makes it: a body of chance
    bool extended;
  };
  static const std::vector<Kind>& Kinds();

  // By write(2).
  void GetContext(Command& command);
  void QueryDevice(Command& command);
  void QueryPort(Command& command);
  void AllocPd(Command& command);
  void DeallocPd(Command& command);
  void RegMr(Command& command);
  void ReregMr(Command& command);
  void DeregMr(Command& command);
  void CreateCompChannel(Command& command);
  void CreateCq(Command& command);
  void ResizeCq(Command& command);
  void DestroyCq(Command& command);
  void PollCq(Command& command);
  void ReqNotifyCq(Command& command);
  void CreateQp(Command& command);
  void QueryQp(Command& command);
  void ModifyQp(Command& command);
  void DestroyQp(Command& command);
  void PostSend(Command& command);
  void PostRecv(Command& command);
  void ExQueryDevice(Command& command);
  void ExCreateCq(Command& command);
  void ExCreateQp(Command& command);
  void ExModifyQp(Command& command);
  void Blind(Command& command, const Kind& kind);
  int Write(Command& command, bool mutate);

  // By ioctl(2).
  void MethodCreateCq(Method& method);
  void MethodDestroyCq(Method& method);
  void MethodCreateQp(Method& method);
  void MethodDestroyQp(Method& method);
  void MethodDestroyMr(Method& method);
  void MethodRegDmabuf(Method& method);
  void MethodAdviseMr(Method& method);
  void MethodQueryMr(Method& method);
  void MethodQueryPort(Method& method);
  void MethodQueryContext(Method& method);
  void MethodQueryGids(Method& method);
  void MethodInfoHandles(Method& method);
  void MethodInvokeWrite(Method& method);
  int Ioctl(Method& method, bool mutate);

  // What they are made of.
  template <typename Body>
  void Put(Command& command, std::uint32_t number, const Body& body, std::size_t answer);
  // With the requests and the scatter lists that follow.
  template <typename Body>
  void PutPost(Command& command, std::uint32_t number, Body& body, std::size_t answer,
               const Bytes& requests, const Bytes& sges);
  std::uint64_t AnswerAt(std::size_t offset = 0) const;
  template <typename Answer>
  Answer ReadAnswer(std::size_t offset = 0) const;
  ib_uverbs_attr Attribute(std::uint16_t id, std::uint16_t length, std::uint64_t data) const;
  template <typename Value>
  std::uint64_t Keep(const Value& value);  // where the kernel may read it
  std::uint32_t Some(const Handles& handles);
  Mr SomeMr();
  Qp SomeQp();
  Qp SomeSender();
  std::uint32_t PeerOf(const Qp& qp);
  unsigned SomeAccess();
  void SomeSges(Bytes& body, std::uint32_t count);
  ib_uverbs_modify_qp SomeTransition();
  void TransitionDone(const Bytes& sent);
  void MutateBytes(Bytes& bytes);
  std::uint32_t OddNumber();
  static void KeepModest(std::uint32_t number, Bytes& body);

  const Arena& arena_;
  Random& random_;
  Tally& tally_;
  std::size_t process_;
  int fd_;
  int dmabuf_ = -1;
  std::size_t kept_ = 0;
  Handles pds_;
  Handles cqs_;
  Handles channels_;  // file descriptors
  std::vector<Mr> mrs_;
  std::vector<Qp> qps_;
};

#endif  // TESTS_GUEST_FUZZ_CONTEXT_H_
