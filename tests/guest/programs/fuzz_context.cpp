// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB

#include "fuzz_context.h"

#include <fcntl.h>
#include <linux/udmabuf.h>
#include <rdma/ib_user_ioctl_cmds.h>
#include <rdma/ib_user_ioctl_verbs.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstring>
#include <utility>

namespace {

constexpr std::size_t kMostHandles = 12;  // of a kind
constexpr std::size_t kPage = 4096;
constexpr std::uint8_t kReset = 0, kInit = 1, kRtr = 2, kRts = 3, kSqd = 4, kErr = 6;
constexpr unsigned kAllAccess = 0xf;
constexpr unsigned kOnDemand = 1U << 6;
constexpr std::size_t kRegAnswer = sizeof(ib_uverbs_reg_mr_resp);

using Bytes = std::vector<std::uint8_t>;

template <typename Value>
void Append(Bytes& bytes, const Value& value) {
  const auto* from = reinterpret_cast<const std::uint8_t*>(&value);
  bytes.insert(bytes.end(), from, from + sizeof value);
}

// What of it is there; the rest is zero.
template <typename Value>
Value Read(const Bytes& bytes, std::size_t offset = 0) {
  Value value{};
  if (offset < bytes.size())
    std::memcpy(&value, &bytes[offset], std::min(sizeof value, bytes.size() - offset));
  return value;
}

template <typename Item, typename Which>
void Forget(std::vector<Item>& items, const Which& which) {
  items.erase(std::remove_if(items.begin(), items.end(), which), items.end());
}

// A dmabuf of ordinary memory, where the kernel makes such.
int MakeDmabuf() {
  const int device = open("/dev/udmabuf", O_RDWR | O_CLOEXEC);
  if (device < 0) return -1;
  constexpr std::size_t kSize = 16 * kPage;
  const int memory = memfd_create("fuzz", MFD_ALLOW_SEALING | MFD_CLOEXEC);
  udmabuf_create request{};
  request.memfd = static_cast<std::uint32_t>(memory);
  request.size = kSize;
  int dmabuf = -1;
  if (ftruncate(memory, kSize) == 0 && fcntl(memory, F_ADD_SEALS, F_SEAL_SHRINK) == 0)
    dmabuf = ioctl(device, UDMABUF_CREATE, &request);
  close(memory);
  close(device);
  return dmabuf;
}

}  // namespace

// ---- the context ----

FuzzContext::FuzzContext(const std::string& path, const Arena& arena, Random& random, Tally& tally,
                         std::size_t process)
    : arena_(arena),
      random_(random),
      tally_(tally),
      process_(process),
      fd_(open(path.c_str(), O_RDWR | O_CLOEXEC)) {
  if (fd_ < 0) Die("cannot open " + path);
  dmabuf_ = MakeDmabuf();
  Command command;
  GetContext(command);
  if (Write(command, false) != 0) Die("no context");
  // So that much is possible from the beginning.
  for (const auto make : {&FuzzContext::AllocPd, &FuzzContext::CreateCq, &FuzzContext::RegMr,
                          &FuzzContext::CreateQp, &FuzzContext::CreateQp}) {
    Command first;
    (this->*make)(first);
    Write(first, false);
  }
}

// All descriptors that the kernel has given are above that one.
FuzzContext::~FuzzContext() { close_range(static_cast<unsigned>(fd_), ~0U, 0); }

std::vector<std::string> FuzzContext::Names() {
  std::vector<std::string> names;
  for (const Kind& kind : Kinds()) names.emplace_back(kind.name);
  return names;
}

void FuzzContext::Step() {
  static const unsigned total = [] {
    unsigned sum = 0;
    for (const Kind& kind : Kinds()) sum += kind.weight;
    return sum;
  }();
  std::uint64_t dice = random_.Below(total);
  std::size_t at = 0;
  while (dice >= Kinds()[at].weight) dice -= Kinds()[at++].weight;
  const Kind& kind = Kinds()[at];
  const bool mutate = random_.Percent(35);
  tally_.kind[process_] = at;
  ++tally_.begun[process_];
  kept_ = kPage;
  int error = 0;
  if (kind.call != nullptr) {
    Method method;
    (this->*kind.call)(method);
    error = Ioctl(method, mutate);
  } else {
    Command command;
    if (kind.make != nullptr) {
      (this->*kind.make)(command);
    } else {
      Blind(command, kind);
    }
    error = Write(command, mutate);
  }
  ++tally_.outcomes[at][std::min<std::size_t>(static_cast<std::size_t>(error), kMostErrnos - 1)];
  ++tally_.commands;
  if (!mutate) {
    ++tally_.plain;
    if (error == 0) ++tally_.plain_good;
  }
}

// ---- how they are sent ----

// Numbers that checks forget.
std::uint32_t FuzzContext::OddNumber() {
  constexpr std::array<std::uint32_t, 8> kOdd = {0,          1,       0x7fffffff, 0x80000000,
                                                 0xffffffff, 0x10000, 4095,       0xfffffffe};
  return random_.Percent(60) ? random_.Of(kOdd) : static_cast<std::uint32_t>(random_.Next());
}

void FuzzContext::MutateBytes(Bytes& bytes) {
  if (bytes.empty()) return;
  for (std::uint64_t left = 1 + random_.Below(2); left > 0; --left) {
    const std::size_t at = random_.Below(bytes.size());
    const std::size_t word = at - at % sizeof(std::uint32_t);
    if (random_.Percent(50) || word + sizeof(std::uint32_t) > bytes.size()) {
      bytes[at] ^= static_cast<std::uint8_t>(1U << random_.Below(8));
    } else {
      const std::uint32_t odd = OddNumber();
      std::memcpy(&bytes[word], &odd, sizeof odd);
    }
  }
}

// A table for all of a region on demand is made at once: none that fills the
// machine. The same place holds for REG_MR and REREG_MR but for eight bytes.
void FuzzContext::KeepModest(std::uint32_t number, Bytes& body) {
  const std::size_t shift = number == IB_USER_VERBS_CMD_REREG_MR ? 8 : 0;
  if (number != IB_USER_VERBS_CMD_REG_MR && shift == 0) return;
  if (body.size() < sizeof(ib_uverbs_reg_mr) + shift) return;
  auto length = Read<std::uint64_t>(body, offsetof(ib_uverbs_reg_mr, length) + shift);
  if (length >> 30 == 0 || length >> 39 != 0) return;
  length &= (1U << 30) - 1;
  std::memcpy(&body[offsetof(ib_uverbs_reg_mr, length) + shift], &length, sizeof length);
}

int FuzzContext::Write(Command& command, bool mutate) {
  constexpr std::size_t kWord = sizeof(std::uint32_t);
  const std::uint64_t way = mutate ? random_.Below(10) : 10;
  if (way < 5) MutateBytes(command.body);
  if (way == 5 && command.body.size() > kWord)
    command.body.resize(kWord * random_.Below(command.body.size() / kWord));
  if (way == 6) command.body.resize(command.body.size() + kWord * (1 + random_.Below(16)));
  KeepModest(command.number, command.body);

  Bytes message;
  std::size_t answer = command.answer;
  if (way == 7) answer = kWord * random_.Below(64);
  ib_uverbs_cmd_hdr header{};
  header.command = command.number;
  if (command.extended) {
    command.body.resize((command.body.size() + 7) / 8 * 8);
    header.command |= IB_USER_VERBS_CMD_FLAG_EXTENDED;
    header.in_words = static_cast<std::uint16_t>(command.body.size() / 8);
    header.out_words = static_cast<std::uint16_t>((answer + 7) / 8);
    ib_uverbs_ex_cmd_hdr more{};
    more.response = answer == 0 ? 0 : AnswerAt();
    Append(message, header);
    Append(message, more);
  } else {
    header.in_words =
        static_cast<std::uint16_t>((sizeof header + command.body.size() + kWord - 1) / kWord);
    header.out_words = static_cast<std::uint16_t>(answer / kWord);
    Append(message, header);
  }
  message.insert(message.end(), command.body.begin(), command.body.end());
  message.resize((message.size() + kWord - 1) / kWord * kWord);
  std::size_t length = message.size();
  if (way == 8) {
    Bytes front(message.begin(), message.begin() + sizeof header);
    MutateBytes(front);
    std::copy(front.begin(), front.end(), message.begin());
  }
  if (way == 9) length = random_.Below(length + 1);
  const ssize_t written = write(fd_, message.data(), length);
  if (written < 0) return errno;
  if (command.done && way != 8) command.done(command.body);
  return 0;
}

int FuzzContext::Ioctl(Method& method, bool mutate) {
  auto& attributes = method.attributes;
  const std::uint64_t way = mutate ? random_.Below(8) : 8;
  if (way < 3 && !attributes.empty()) {
    ib_uverbs_attr& attribute = random_.Of(attributes);
    Bytes bytes;
    Append(bytes, attribute);
    MutateBytes(bytes);
    attribute = Read<ib_uverbs_attr>(bytes);
  }
  if (way == 3 && !attributes.empty())
    attributes.erase(attributes.begin() +
                     static_cast<std::ptrdiff_t>(random_.Below(attributes.size())));
  if (way == 4 && !attributes.empty()) attributes.push_back(random_.Of(attributes));
  if (way == 5 && !attributes.empty())
    random_.Of(attributes).data = reinterpret_cast<std::uintptr_t>(arena_.nothing());

  Bytes message;
  ib_uverbs_ioctl_hdr header{};
  const std::size_t size = sizeof header + attributes.size() * sizeof(ib_uverbs_attr);
  header.length = static_cast<std::uint16_t>(size);
  header.object_id = method.object;
  header.method_id = method.method;
  header.num_attrs = static_cast<std::uint16_t>(attributes.size());
  header.driver_id = RDMA_DRIVER_UNKNOWN;
  Append(message, header);
  for (const ib_uverbs_attr& attribute : attributes) Append(message, attribute);
  if (way == 6) {
    Bytes front(message.begin(), message.begin() + sizeof header);
    MutateBytes(front);
    std::copy(front.begin(), front.end(), message.begin());
  }
  if (way == 7) MutateBytes(message);
  // As long as a header could say it is.
  message.resize(std::max<std::size_t>(message.size(), std::size_t{1} << 16));
  if (ioctl(fd_, RDMA_VERBS_IOCTL, message.data()) != 0) return errno;
  if (method.done && way > 6)
    method.done(Bytes(message.begin() + sizeof header,
                      message.begin() + static_cast<std::ptrdiff_t>(size)));
  return 0;
}

// ---- what they are made of ----

template <typename Body>
void FuzzContext::Put(Command& command, std::uint32_t number, const Body& body,
                      std::size_t answer) {
  command.number = number;
  command.answer = answer;
  Append(command.body, body);
}

template <typename Body>
void FuzzContext::PutPost(Command& command, std::uint32_t number, Body& body, std::size_t answer,
                          const Bytes& requests, const Bytes& sges) {
  body.sge_count = static_cast<std::uint32_t>(sges.size() / sizeof(ib_uverbs_sge));
  Put(command, number, body, answer);
  command.body.insert(command.body.end(), requests.begin(), requests.end());
  command.body.insert(command.body.end(), sges.begin(), sges.end());
}

std::uint64_t FuzzContext::AnswerAt(std::size_t offset) const {
  return reinterpret_cast<std::uintptr_t>(arena_.answer()) + offset;
}

template <typename Answer>
Answer FuzzContext::ReadAnswer(std::size_t offset) const {
  Answer answer{};
  std::memcpy(&answer, arena_.answer() + offset, sizeof answer);
  return answer;
}

ib_uverbs_attr FuzzContext::Attribute(std::uint16_t id, std::uint16_t length,
                                      std::uint64_t data) const {
  ib_uverbs_attr attribute{};
  attribute.attr_id = id;
  attribute.len = length;
  attribute.flags = UVERBS_ATTR_F_MANDATORY;
  attribute.data = data;
  return attribute;
}

// Behind the answers; until the next step.
template <typename Value>
std::uint64_t FuzzContext::Keep(const Value& value) {
  const std::size_t at = kept_;
  std::memcpy(arena_.answer() + at, &value, sizeof value);
  kept_ += (sizeof value + 7) / 8 * 8;
  return AnswerAt(at);
}

std::uint32_t FuzzContext::Some(const Handles& handles) {
  if (handles.empty() || random_.Percent(2)) return OddNumber();
  // The first one mostly: so that what is made of them fits together.
  return random_.Percent(70) ? handles.front() : random_.Of(handles);
}

FuzzContext::Mr FuzzContext::SomeMr() {
  if (mrs_.empty() || random_.Percent(2))
    return {OddNumber(), OddNumber(), reinterpret_cast<std::uintptr_t>(arena_.memory()), kPage};
  return random_.Of(mrs_);
}

FuzzContext::Qp FuzzContext::SomeQp() {
  if (qps_.empty() || random_.Percent(2)) return {OddNumber(), OddNumber(), kReset};
  return random_.Of(qps_);
}

unsigned FuzzContext::SomeAccess() {
  const std::uint64_t dice = random_.Below(10);
  if (dice < 6) return kAllAccess;
  if (dice < 8) return kAllAccess | kOnDemand;
  return static_cast<unsigned>(random_.Below(0x200));
}

void FuzzContext::SomeSges(Bytes& body, std::uint32_t count) {
  for (; count > 0; --count) {
    const Mr mr = SomeMr();
    ib_uverbs_sge sge{};
    sge.addr = mr.address;
    sge.length = static_cast<std::uint32_t>(1 + random_.Below(mr.length));
    sge.lkey = mr.key;
    Append(body, sge);
  }
}

// ---- by write(2) ----

void FuzzContext::GetContext(Command& command) {
  ib_uverbs_get_context body{};
  body.response = AnswerAt();
  Put(command, IB_USER_VERBS_CMD_GET_CONTEXT, body,
      sizeof(ib_uverbs_get_context_resp) + (random_.Percent(50) ? 16 : 0));
}

void FuzzContext::QueryDevice(Command& command) {
  ib_uverbs_query_device body{};
  body.response = AnswerAt();
  Put(command, IB_USER_VERBS_CMD_QUERY_DEVICE, body, sizeof(ib_uverbs_query_device_resp));
}

void FuzzContext::QueryPort(Command& command) {
  ib_uverbs_query_port body{};
  body.response = AnswerAt();
  body.port_num = 1;
  Put(command, IB_USER_VERBS_CMD_QUERY_PORT, body, sizeof(ib_uverbs_query_port_resp));
}

void FuzzContext::AllocPd(Command& command) {
  if (pds_.size() >= kMostHandles) return DeallocPd(command);
  ib_uverbs_alloc_pd body{};
  body.response = AnswerAt();
  Put(command, IB_USER_VERBS_CMD_ALLOC_PD, body, sizeof(ib_uverbs_alloc_pd_resp));
  command.done = [this](const Bytes&) {
    pds_.push_back(ReadAnswer<ib_uverbs_alloc_pd_resp>().pd_handle);
  };
}

void FuzzContext::DeallocPd(Command& command) {
  ib_uverbs_dealloc_pd body{};
  body.pd_handle = Some(pds_);
  Put(command, IB_USER_VERBS_CMD_DEALLOC_PD, body, 0);
  command.done = [this](const Bytes& sent) {
    Forget(pds_, [handle = Read<std::uint32_t>(sent)](std::uint32_t pd) { return pd == handle; });
  };
}

void FuzzContext::RegMr(Command& command) {
  if (mrs_.size() >= kMostHandles) return DeregMr(command);
  ib_uverbs_reg_mr body{};
  const std::size_t offset = random_.Below(Arena::kMemory);
  body.response = AnswerAt();
  body.start = reinterpret_cast<std::uintptr_t>(arena_.memory()) + offset;
  body.length = 1 + random_.Below(std::min(Arena::kMemory - offset, 32 * kPage));
  body.hca_va = random_.Percent(80) ? body.start : random_.Next() << 24 | body.start % kPage;
  body.pd_handle = Some(pds_);
  body.access_flags = SomeAccess();
  Put(command, IB_USER_VERBS_CMD_REG_MR, body, kRegAnswer + 4 * random_.Below(30));
  command.done = [this](const Bytes& sent) {
    const auto asked = Read<ib_uverbs_reg_mr>(sent);
    const auto answer = ReadAnswer<ib_uverbs_reg_mr_resp>();
    mrs_.push_back({answer.mr_handle, answer.lkey, asked.hca_va, asked.length});
  };
}

void FuzzContext::ReregMr(Command& command) {
  ib_uverbs_rereg_mr body{};
  const std::size_t offset = random_.Below(Arena::kMemory / 2);
  body.response = AnswerAt();
  body.mr_handle = SomeMr().handle;
  body.flags = static_cast<std::uint32_t>(1 + random_.Below(7));
  body.start = reinterpret_cast<std::uintptr_t>(arena_.memory()) + offset;
  body.length = 1 + random_.Below(16 * kPage);
  body.hca_va = body.start;
  body.pd_handle = Some(pds_);
  body.access_flags = SomeAccess();
  Put(command, IB_USER_VERBS_CMD_REREG_MR, body, sizeof(ib_uverbs_rereg_mr_resp));
  command.done = [this](const Bytes& sent) {
    const auto asked = Read<ib_uverbs_rereg_mr>(sent);
    for (Mr& mr : mrs_) {
      if (mr.handle != asked.mr_handle) continue;
      mr.key = ReadAnswer<ib_uverbs_rereg_mr_resp>().lkey;
      if ((asked.flags & 1) == 0) continue;
      mr.address = asked.hca_va;
      mr.length = asked.length;
    }
  };
}

void FuzzContext::DeregMr(Command& command) {
  ib_uverbs_dereg_mr body{};
  body.mr_handle = SomeMr().handle;
  Put(command, IB_USER_VERBS_CMD_DEREG_MR, body, 0);
  command.done = [this](const Bytes& sent) {
    Forget(mrs_,
           [handle = Read<std::uint32_t>(sent)](const Mr& mr) { return mr.handle == handle; });
  };
}

void FuzzContext::CreateCompChannel(Command& command) {
  ib_uverbs_create_comp_channel body{};
  body.response = AnswerAt();
  Put(command, IB_USER_VERBS_CMD_CREATE_COMP_CHANNEL, body,
      sizeof(ib_uverbs_create_comp_channel_resp));
  command.done = [this](const Bytes&) {
    channels_.push_back(ReadAnswer<ib_uverbs_create_comp_channel_resp>().fd);
  };
}

void FuzzContext::CreateCq(Command& command) {
  if (cqs_.size() >= kMostHandles) return DestroyCq(command);
  ib_uverbs_create_cq body{};
  body.response = AnswerAt();
  body.cqe = static_cast<std::uint32_t>(1 + random_.Below(random_.Percent(80) ? 64 : 70'000));
  body.comp_channel = random_.Percent(60) ? -1 : static_cast<std::int32_t>(Some(channels_));
  Put(command, IB_USER_VERBS_CMD_CREATE_CQ, body, sizeof(ib_uverbs_create_cq_resp));
  command.done = [this](const Bytes&) {
    cqs_.push_back(ReadAnswer<ib_uverbs_create_cq_resp>().cq_handle);
  };
}

void FuzzContext::ResizeCq(Command& command) {
  ib_uverbs_resize_cq body{};
  body.response = AnswerAt();
  body.cq_handle = Some(cqs_);
  body.cqe = static_cast<std::uint32_t>(random_.Below(random_.Percent(80) ? 128 : 70'000));
  Put(command, IB_USER_VERBS_CMD_RESIZE_CQ, body, sizeof(ib_uverbs_resize_cq_resp));
}

void FuzzContext::DestroyCq(Command& command) {
  ib_uverbs_destroy_cq body{};
  body.response = AnswerAt();
  body.cq_handle = Some(cqs_);
  Put(command, IB_USER_VERBS_CMD_DESTROY_CQ, body, sizeof(ib_uverbs_destroy_cq_resp));
  command.done = [this](const Bytes& sent) {
    const auto handle = Read<ib_uverbs_destroy_cq>(sent).cq_handle;
    Forget(cqs_, [handle](std::uint32_t cq) { return cq == handle; });
  };
}

void FuzzContext::PollCq(Command& command) {
  ib_uverbs_poll_cq body{};
  body.response = AnswerAt();
  body.cq_handle = Some(cqs_);
  body.ne = static_cast<std::uint32_t>(1 + random_.Below(32));
  Put(command, IB_USER_VERBS_CMD_POLL_CQ, body, 8 + body.ne * sizeof(ib_uverbs_wc));
}

void FuzzContext::ReqNotifyCq(Command& command) {
  ib_uverbs_req_notify_cq body{};
  body.cq_handle = Some(cqs_);
  body.solicited_only = static_cast<std::uint32_t>(random_.Below(2));
  Put(command, IB_USER_VERBS_CMD_REQ_NOTIFY_CQ, body, 0);
}

void FuzzContext::CreateQp(Command& command) {
  if (qps_.size() >= kMostHandles) return DestroyQp(command);
  ib_uverbs_create_qp body{};
  const bool large = random_.Percent(5);
  body.response = AnswerAt();
  body.pd_handle = Some(pds_);
  body.send_cq_handle = Some(cqs_);
  body.recv_cq_handle = Some(cqs_);
  body.max_send_wr = static_cast<std::uint32_t>(8 + random_.Below(large ? 17'000 : 32));
  body.max_recv_wr = static_cast<std::uint32_t>(random_.Below(large ? 17'000 : 32));
  body.max_send_sge = static_cast<std::uint32_t>(2 + random_.Below(large ? 34 : 5));
  body.max_recv_sge = static_cast<std::uint32_t>(2 + random_.Below(large ? 34 : 5));
  body.max_inline_data = static_cast<std::uint32_t>(random_.Below(large ? 520 : 128));
  body.sq_sig_all = random_.Percent(50) ? 1 : 0;
  body.qp_type = random_.Percent(70) ? IB_UVERBS_QPT_RC : IB_UVERBS_QPT_UC;
  Put(command, IB_USER_VERBS_CMD_CREATE_QP, body, sizeof(ib_uverbs_create_qp_resp));
  command.done = [this](const Bytes&) {
    const auto answer = ReadAnswer<ib_uverbs_create_qp_resp>();
    qps_.push_back({answer.qp_handle, answer.qpn, kReset});
  };
}

void FuzzContext::QueryQp(Command& command) {
  ib_uverbs_query_qp body{};
  body.response = AnswerAt();
  body.qp_handle = SomeQp().handle;
  body.attr_mask = static_cast<std::uint32_t>(random_.Next());
  Put(command, IB_USER_VERBS_CMD_QUERY_QP, body, sizeof(ib_uverbs_query_qp_resp));
}

// Two neighbours in the list mostly: so that they are connected to each other.
std::uint32_t FuzzContext::PeerOf(const Qp& qp) {
  for (std::size_t i = 0; i < qps_.size(); ++i)
    if (qps_[i].handle == qp.handle && (i ^ 1) < qps_.size() && random_.Percent(90))
      return qps_[i ^ 1].number;
  return SomeQp().number;
}

// One that may send, mostly.
FuzzContext::Qp FuzzContext::SomeSender() {
  for (const Qp& qp : qps_)
    if (qp.state == kRts && random_.Percent(50)) return qp;
  return SomeQp();
}

// The next step of its life, or one aside.
ib_uverbs_modify_qp FuzzContext::SomeTransition() {
  constexpr std::uint32_t kState = 1U << 0, kAccess = 1U << 3, kPkey = 1U << 4, kPort = 1U << 5,
                          kAv = 1U << 7, kMtu = 1U << 8, kTimeout = 1U << 9, kRetry = 1U << 10,
                          kRnrRetry = 1U << 11, kRqPsn = 1U << 12, kReads = 1U << 13,
                          kRnrTimer = 1U << 15, kSqPsn = 1U << 16, kDestReads = 1U << 17,
                          kPeer = 1U << 20;
  ib_uverbs_modify_qp body{};
  const Qp qp = SomeQp();
  body.qp_handle = qp.handle;
  body.port_num = 1;
  body.qp_access_flags = kAllAccess;
  body.path_mtu = static_cast<std::uint8_t>(1 + random_.Below(5));
  body.dest_qp_num = PeerOf(qp);
  body.dest.dlid = 1;
  body.dest.port_num = 1;
  body.timeout = static_cast<std::uint8_t>(random_.Below(12));
  body.retry_cnt = static_cast<std::uint8_t>(random_.Below(8));
  body.rnr_retry = static_cast<std::uint8_t>(random_.Below(8));
  body.min_rnr_timer = static_cast<std::uint8_t>(random_.Below(32));
  body.max_rd_atomic = 1;
  body.max_dest_rd_atomic = 1;
  body.cur_qp_state = qp.state;
  body.qp_state = static_cast<std::uint8_t>(qp.state + 1);
  if (qp.state == kRts) body.qp_state = kSqd;
  if (qp.state == kSqd) body.qp_state = kRts;
  if (qp.state > kSqd || random_.Percent(qp.state >= kRts ? 15 : 3))
    body.qp_state = random_.Percent(70) ? kReset : kErr;
  body.attr_mask = kState;
  // What is unreliable lacks some of these: it is refused then, or not asked.
  const bool reliable = random_.Percent(70);
  if (body.qp_state == kInit) body.attr_mask |= kPkey | kPort | kAccess;
  if (body.qp_state == kRtr)
    body.attr_mask |= kAv | kMtu | kPeer | kRqPsn | (reliable ? kDestReads | kRnrTimer : 0);
  if (body.qp_state == kRts && qp.state == kRtr)
    body.attr_mask |= kSqPsn | (reliable ? kTimeout | kRetry | kRnrRetry | kReads : 0);
  return body;
}

void FuzzContext::TransitionDone(const Bytes& sent) {
  const auto asked = Read<ib_uverbs_modify_qp>(sent);
  if ((asked.attr_mask & 1) == 0) return;
  for (Qp& qp : qps_)
    if (qp.handle == asked.qp_handle) qp.state = asked.qp_state;
}

void FuzzContext::ModifyQp(Command& command) {
  Put(command, IB_USER_VERBS_CMD_MODIFY_QP, SomeTransition(), 0);
  command.done = [this](const Bytes& sent) { TransitionDone(sent); };
}

void FuzzContext::DestroyQp(Command& command) {
  ib_uverbs_destroy_qp body{};
  body.response = AnswerAt();
  body.qp_handle = SomeQp().handle;
  Put(command, IB_USER_VERBS_CMD_DESTROY_QP, body, sizeof(ib_uverbs_destroy_qp_resp));
  command.done = [this](const Bytes& sent) {
    const auto handle = Read<ib_uverbs_destroy_qp>(sent).qp_handle;
    Forget(qps_, [handle](const Qp& qp) { return qp.handle == handle; });
  };
}

void FuzzContext::PostSend(Command& command) {
  constexpr std::uint32_t kSignaled = 2, kInline = 8;
  ib_uverbs_post_send body{};
  Bytes requests, sges;
  body.response = AnswerAt();
  body.qp_handle = SomeSender().handle;
  body.wr_count = static_cast<std::uint32_t>(1 + random_.Below(4));
  body.wqe_size = sizeof(ib_uverbs_send_wr);
  for (std::uint32_t i = 0; i < body.wr_count; ++i) {
    const Mr target = SomeMr();
    ib_uverbs_send_wr wr{};
    wr.num_sge = static_cast<std::uint32_t>(random_.Below(3));
    wr.opcode = static_cast<std::uint32_t>(random_.Below(random_.Percent(95) ? 7 : 16));
    wr.send_flags = kSignaled | (random_.Percent(10) ? kInline : 0);
    wr.ex.invalidate_rkey = target.key;
    if (wr.opcode == IB_UVERBS_WR_ATOMIC_CMP_AND_SWP ||
        wr.opcode == IB_UVERBS_WR_ATOMIC_FETCH_AND_ADD) {
      wr.wr.atomic.remote_addr = target.address;
      wr.wr.atomic.rkey = target.key;
    } else {
      wr.wr.rdma.remote_addr = target.address;
      wr.wr.rdma.rkey = target.key;
    }
    SomeSges(sges, wr.num_sge);
    Append(requests, wr);
  }
  PutPost(command, IB_USER_VERBS_CMD_POST_SEND, body, sizeof(ib_uverbs_post_send_resp), requests,
          sges);
}

void FuzzContext::PostRecv(Command& command) {
  ib_uverbs_post_recv body{};
  Bytes requests, sges;
  body.response = AnswerAt();
  body.qp_handle = SomeQp().handle;
  body.wr_count = static_cast<std::uint32_t>(1 + random_.Below(4));
  body.wqe_size = sizeof(ib_uverbs_recv_wr);
  for (std::uint32_t i = 0; i < body.wr_count; ++i) {
    ib_uverbs_recv_wr wr{};
    wr.num_sge = static_cast<std::uint32_t>(random_.Below(4));
    SomeSges(sges, wr.num_sge);
    Append(requests, wr);
  }
  PutPost(command, IB_USER_VERBS_CMD_POST_RECV, body, sizeof(ib_uverbs_post_recv_resp), requests,
          sges);
}

void FuzzContext::ExQueryDevice(Command& command) {
  const ib_uverbs_ex_query_device body{};
  Put(command, IB_USER_VERBS_EX_CMD_QUERY_DEVICE, body, sizeof(ib_uverbs_ex_query_device_resp));
  command.extended = true;
}

void FuzzContext::ExCreateCq(Command& command) {
  if (cqs_.size() >= kMostHandles) return DestroyCq(command);
  ib_uverbs_ex_create_cq body{};
  body.cqe = static_cast<std::uint32_t>(1 + random_.Below(64));
  body.comp_channel = -1;
  body.flags = random_.Percent(90) ? 0 : static_cast<std::uint32_t>(random_.Below(8));
  Put(command, IB_USER_VERBS_EX_CMD_CREATE_CQ, body, sizeof(ib_uverbs_ex_create_cq_resp));
  command.extended = true;
  command.done = [this](const Bytes&) {
    cqs_.push_back(ReadAnswer<ib_uverbs_create_cq_resp>().cq_handle);
  };
}

void FuzzContext::ExCreateQp(Command& command) {
  if (qps_.size() >= kMostHandles) return DestroyQp(command);
  ib_uverbs_ex_create_qp body{};
  body.pd_handle = Some(pds_);
  body.send_cq_handle = Some(cqs_);
  body.recv_cq_handle = Some(cqs_);
  body.max_send_wr = 8;
  body.max_recv_wr = 8;
  body.max_send_sge = 2;
  body.max_recv_sge = 2;
  body.qp_type = random_.Percent(70) ? IB_UVERBS_QPT_RC : IB_UVERBS_QPT_UC;
  Put(command, IB_USER_VERBS_EX_CMD_CREATE_QP, body, sizeof(ib_uverbs_ex_create_qp_resp));
  command.extended = true;
  command.done = [this](const Bytes&) {
    const auto answer = ReadAnswer<ib_uverbs_create_qp_resp>();
    qps_.push_back({answer.qp_handle, answer.qpn, kReset});
  };
}

void FuzzContext::ExModifyQp(Command& command) {
  Put(command, IB_USER_VERBS_EX_CMD_MODIFY_QP, SomeTransition(),
      sizeof(ib_uverbs_ex_modify_qp_resp));
  command.extended = true;
  command.done = [this](const Bytes& sent) { TransitionDone(sent); };
}

// What the device has not, or what has no model here.
void FuzzContext::Blind(Command& command, const Kind& kind) {
  command.number = kind.number;
  command.extended = kind.extended;
  command.answer = 8 * random_.Below(16);
  command.body.resize(8 * (1 + random_.Below(16)));
  if (!kind.extended) {
    const std::uint64_t answer = AnswerAt();
    std::memcpy(command.body.data(), &answer, sizeof answer);
  }
  for (std::size_t at = 8; at < command.body.size(); at += sizeof(std::uint32_t)) {
    const std::uint32_t word =
        random_.Percent(60) ? static_cast<std::uint32_t>(random_.Below(4)) : OddNumber();
    std::memcpy(&command.body[at], &word, sizeof word);
  }
}

// ---- by ioctl(2) ----

namespace {

// The handle that an attribute holds after the call.
std::uint32_t HandleIn(const Bytes& sent, std::size_t at) {
  return static_cast<std::uint32_t>(Read<ib_uverbs_attr>(sent, at * sizeof(ib_uverbs_attr)).data);
}

}  // namespace

void FuzzContext::MethodCreateCq(Method& method) {
  if (cqs_.size() >= kMostHandles) return MethodDestroyCq(method);
  method.object = UVERBS_OBJECT_CQ;
  method.method = UVERBS_METHOD_CQ_CREATE;
  method.attributes = {Attribute(UVERBS_ATTR_CREATE_CQ_HANDLE, 0, 0),
                       Attribute(UVERBS_ATTR_CREATE_CQ_CQE, 4, 1 + random_.Below(64)),
                       Attribute(UVERBS_ATTR_CREATE_CQ_USER_HANDLE, 8, 1),
                       Attribute(UVERBS_ATTR_CREATE_CQ_COMP_VECTOR, 4, 0),
                       Attribute(UVERBS_ATTR_CREATE_CQ_RESP_CQE, 4, AnswerAt())};
  if (!channels_.empty() && random_.Percent(40))
    method.attributes.push_back(
        Attribute(UVERBS_ATTR_CREATE_CQ_COMP_CHANNEL, 0, random_.Of(channels_)));
  method.done = [this](const Bytes& sent) { cqs_.push_back(HandleIn(sent, 0)); };
}

void FuzzContext::MethodDestroyCq(Method& method) {
  method.object = UVERBS_OBJECT_CQ;
  method.method = UVERBS_METHOD_CQ_DESTROY;
  method.attributes = {Attribute(UVERBS_ATTR_DESTROY_CQ_HANDLE, 0, Some(cqs_)),
                       Attribute(UVERBS_ATTR_DESTROY_CQ_RESP, 8, AnswerAt())};
  method.done = [this](const Bytes& sent) {
    Forget(cqs_, [handle = HandleIn(sent, 0)](std::uint32_t cq) { return cq == handle; });
  };
}

void FuzzContext::MethodCreateQp(Method& method) {
  if (qps_.size() >= kMostHandles) return MethodDestroyQp(method);
  ib_uverbs_qp_cap cap{};
  cap.max_send_wr = static_cast<std::uint32_t>(random_.Below(32));
  cap.max_recv_wr = static_cast<std::uint32_t>(random_.Below(32));
  cap.max_send_sge = 4;
  cap.max_recv_sge = 4;
  cap.max_inline_data = 64;
  method.object = UVERBS_OBJECT_QP;
  method.method = UVERBS_METHOD_QP_CREATE;
  method.attributes = {Attribute(UVERBS_ATTR_CREATE_QP_HANDLE, 0, 0),
                       Attribute(UVERBS_ATTR_CREATE_QP_PD_HANDLE, 0, Some(pds_)),
                       Attribute(UVERBS_ATTR_CREATE_QP_SEND_CQ_HANDLE, 0, Some(cqs_)),
                       Attribute(UVERBS_ATTR_CREATE_QP_RECV_CQ_HANDLE, 0, Some(cqs_)),
                       Attribute(UVERBS_ATTR_CREATE_QP_USER_HANDLE, 8, 1),
                       Attribute(UVERBS_ATTR_CREATE_QP_CAP, sizeof cap, Keep(cap)),
                       Attribute(UVERBS_ATTR_CREATE_QP_TYPE, 8, IB_UVERBS_QPT_RC),
                       Attribute(UVERBS_ATTR_CREATE_QP_RESP_CAP, sizeof cap, AnswerAt(64)),
                       Attribute(UVERBS_ATTR_CREATE_QP_RESP_QP_NUM, 4, AnswerAt())};
  method.done = [this](const Bytes& sent) {
    qps_.push_back({HandleIn(sent, 0), ReadAnswer<std::uint32_t>(), kReset});
  };
}

void FuzzContext::MethodDestroyQp(Method& method) {
  method.object = UVERBS_OBJECT_QP;
  method.method = UVERBS_METHOD_QP_DESTROY;
  method.attributes = {Attribute(UVERBS_ATTR_DESTROY_QP_HANDLE, 0, SomeQp().handle),
                       Attribute(UVERBS_ATTR_DESTROY_QP_RESP, 4, AnswerAt())};
  method.done = [this](const Bytes& sent) {
    Forget(qps_, [handle = HandleIn(sent, 0)](const Qp& qp) { return qp.handle == handle; });
  };
}

void FuzzContext::MethodDestroyMr(Method& method) {
  method.object = UVERBS_OBJECT_MR;
  method.method = UVERBS_METHOD_MR_DESTROY;
  method.attributes = {Attribute(UVERBS_ATTR_DESTROY_MR_HANDLE, 0, SomeMr().handle)};
  method.done = [this](const Bytes& sent) {
    Forget(mrs_, [handle = HandleIn(sent, 0)](const Mr& mr) { return mr.handle == handle; });
  };
}

void FuzzContext::MethodRegDmabuf(Method& method) {
  if (mrs_.size() >= kMostHandles) return MethodDestroyMr(method);
  const std::uint64_t offset = random_.Below(8 * kPage);
  const std::uint64_t length = 1 + random_.Below(8 * kPage);
  const std::uint64_t iova = offset;
  method.object = UVERBS_OBJECT_MR;
  method.method = UVERBS_METHOD_REG_DMABUF_MR;
  method.attributes = {
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_HANDLE, 0, 0),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_PD_HANDLE, 0, Some(pds_)),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_OFFSET, 8, offset),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_LENGTH, 8, length),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_IOVA, 8, iova),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_FD, 4, static_cast<std::uint32_t>(dmabuf_)),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_ACCESS_FLAGS, 4, kAllAccess),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_RESP_LKEY, 4, AnswerAt()),
      Attribute(UVERBS_ATTR_REG_DMABUF_MR_RESP_RKEY, 4, AnswerAt(8))};
  method.done = [this, iova, length](const Bytes& sent) {
    mrs_.push_back({HandleIn(sent, 0), ReadAnswer<std::uint32_t>(), iova, length});
  };
}

void FuzzContext::MethodAdviseMr(Method& method) {
  Bytes sges;
  SomeSges(sges, 2);
  std::array<std::uint8_t, 2 * sizeof(ib_uverbs_sge)> list{};
  std::copy(sges.begin(), sges.end(), list.begin());
  method.object = UVERBS_OBJECT_MR;
  method.method = UVERBS_METHOD_ADVISE_MR;
  const std::uint64_t advice = Keep(std::uint64_t{random_.Below(3)});
  method.attributes = {
      Attribute(UVERBS_ATTR_ADVISE_MR_PD_HANDLE, 0, Some(pds_)),
      Attribute(UVERBS_ATTR_ADVISE_MR_ADVICE, 8, ReadAnswer<std::uint64_t>(advice - AnswerAt())),
      Attribute(UVERBS_ATTR_ADVISE_MR_FLAGS, 4, random_.Below(2)),
      Attribute(UVERBS_ATTR_ADVISE_MR_SGE_LIST,
                static_cast<std::uint16_t>(sizeof(ib_uverbs_sge) * (1 + random_.Below(2))),
                Keep(list))};
}

void FuzzContext::MethodQueryMr(Method& method) {
  method.object = UVERBS_OBJECT_MR;
  method.method = UVERBS_METHOD_QUERY_MR;
  method.attributes = {Attribute(UVERBS_ATTR_QUERY_MR_HANDLE, 0, SomeMr().handle),
                       Attribute(UVERBS_ATTR_QUERY_MR_RESP_LKEY, 4, AnswerAt()),
                       Attribute(UVERBS_ATTR_QUERY_MR_RESP_RKEY, 4, AnswerAt(8)),
                       Attribute(UVERBS_ATTR_QUERY_MR_RESP_LENGTH, 8, AnswerAt(16)),
                       Attribute(UVERBS_ATTR_QUERY_MR_RESP_IOVA, 8, AnswerAt(24))};
}

void FuzzContext::MethodQueryPort(Method& method) {
  method.object = UVERBS_OBJECT_DEVICE;
  method.method = UVERBS_METHOD_QUERY_PORT;
  method.attributes = {
      Attribute(UVERBS_ATTR_QUERY_PORT_PORT_NUM, 8, 1),
      Attribute(UVERBS_ATTR_QUERY_PORT_RESP, sizeof(ib_uverbs_query_port_resp_ex), AnswerAt())};
}

void FuzzContext::MethodQueryContext(Method& method) {
  method.object = UVERBS_OBJECT_DEVICE;
  method.method = UVERBS_METHOD_QUERY_CONTEXT;
  method.attributes = {Attribute(UVERBS_ATTR_QUERY_CONTEXT_NUM_COMP_VECTORS, 4, AnswerAt()),
                       Attribute(UVERBS_ATTR_QUERY_CONTEXT_CORE_SUPPORT, 8, AnswerAt(8))};
}

void FuzzContext::MethodQueryGids(Method& method) {
  method.object = UVERBS_OBJECT_DEVICE;
  method.method = UVERBS_METHOD_QUERY_GID_TABLE;
  method.attributes = {
      Attribute(UVERBS_ATTR_QUERY_GID_TABLE_ENTRY_SIZE, 8, sizeof(ib_uverbs_gid_entry)),
      Attribute(UVERBS_ATTR_QUERY_GID_TABLE_FLAGS, 4, 0),
      Attribute(UVERBS_ATTR_QUERY_GID_TABLE_RESP_ENTRIES, 4 * sizeof(ib_uverbs_gid_entry),
                AnswerAt(64)),
      Attribute(UVERBS_ATTR_QUERY_GID_TABLE_RESP_NUM_ENTRIES, 8, AnswerAt())};
}

void FuzzContext::MethodInfoHandles(Method& method) {
  method.object = UVERBS_OBJECT_DEVICE;
  method.method = UVERBS_METHOD_INFO_HANDLES;
  method.attributes = {Attribute(UVERBS_ATTR_INFO_OBJECT_ID, 8, random_.Below(20)),
                       Attribute(UVERBS_ATTR_INFO_TOTAL_HANDLES, 4, AnswerAt()),
                       Attribute(UVERBS_ATTR_INFO_HANDLES_LIST, 256, AnswerAt(64))};
}

// A command of write(2) in an ioctl.
void FuzzContext::MethodInvokeWrite(Method& method) {
  static constexpr std::array kMakes = {
      &FuzzContext::QueryDevice, &FuzzContext::AllocPd,  &FuzzContext::RegMr,
      &FuzzContext::DeregMr,     &FuzzContext::CreateCq, &FuzzContext::CreateQp,
      &FuzzContext::ModifyQp,    &FuzzContext::PostSend, &FuzzContext::PollCq};
  Command command;
  (this->*random_.Of(kMakes))(command);
  KeepModest(command.number, command.body);
  std::memcpy(arena_.answer() + kept_, command.body.data(), command.body.size());
  method.object = UVERBS_OBJECT_DEVICE;
  method.method = UVERBS_METHOD_INVOKE_WRITE;
  method.attributes = {Attribute(UVERBS_ATTR_CORE_IN,
                                 static_cast<std::uint16_t>(command.body.size()), AnswerAt(kept_)),
                       Attribute(UVERBS_ATTR_WRITE_CMD, 8, command.number)};
  if (command.body.size() <= sizeof(std::uint64_t)) {
    Bytes inlined = command.body;
    inlined.resize(sizeof(std::uint64_t));
    method.attributes[0].data = Read<std::uint64_t>(inlined);
  }
  if (command.answer != 0)
    method.attributes.push_back(
        Attribute(UVERBS_ATTR_CORE_OUT, static_cast<std::uint16_t>(command.answer), AnswerAt()));
  method.done = [done = command.done, body = command.body](const Bytes&) {
    if (done) done(body);
  };
}

// ---- all of them ----

const std::vector<FuzzContext::Kind>& FuzzContext::Kinds() {
  const auto by_write = [](const char* name, unsigned weight, void (FuzzContext::*make)(Command&)) {
    return Kind{name, weight, make, nullptr, 0, false};
  };
  const auto by_ioctl = [](const char* name, unsigned weight, void (FuzzContext::*call)(Method&)) {
    return Kind{name, weight, nullptr, call, 0, false};
  };
  const auto blind = [](const char* name, std::uint32_t number, bool extended = false) {
    return Kind{name, 1, nullptr, nullptr, number, extended};
  };
  static const std::vector<Kind> kinds = {
      by_write("get_context", 1, &FuzzContext::GetContext),
      by_write("query_device", 3, &FuzzContext::QueryDevice),
      by_write("query_port", 3, &FuzzContext::QueryPort),
      by_write("alloc_pd", 6, &FuzzContext::AllocPd),
      by_write("dealloc_pd", 3, &FuzzContext::DeallocPd),
      by_write("reg_mr", 30, &FuzzContext::RegMr),
      by_write("rereg_mr", 12, &FuzzContext::ReregMr),
      by_write("dereg_mr", 12, &FuzzContext::DeregMr),
      by_write("create_comp_channel", 2, &FuzzContext::CreateCompChannel),
      by_write("create_cq", 8, &FuzzContext::CreateCq),
      by_write("resize_cq", 6, &FuzzContext::ResizeCq),
      by_write("destroy_cq", 3, &FuzzContext::DestroyCq),
      by_write("poll_cq", 15, &FuzzContext::PollCq),
      by_write("req_notify_cq", 5, &FuzzContext::ReqNotifyCq),
      by_write("create_qp", 10, &FuzzContext::CreateQp),
      by_write("query_qp", 5, &FuzzContext::QueryQp),
      by_write("modify_qp", 50, &FuzzContext::ModifyQp),
      by_write("destroy_qp", 3, &FuzzContext::DestroyQp),
      by_write("post_send", 40, &FuzzContext::PostSend),
      by_write("post_recv", 20, &FuzzContext::PostRecv),
      by_write("ex_query_device", 3, &FuzzContext::ExQueryDevice),
      by_write("ex_create_cq", 4, &FuzzContext::ExCreateCq),
      by_write("ex_create_qp", 4, &FuzzContext::ExCreateQp),
      by_write("ex_modify_qp", 10, &FuzzContext::ExModifyQp),
      by_ioctl("method_create_cq", 4, &FuzzContext::MethodCreateCq),
      by_ioctl("method_destroy_cq", 2, &FuzzContext::MethodDestroyCq),
      by_ioctl("method_create_qp", 4, &FuzzContext::MethodCreateQp),
      by_ioctl("method_destroy_qp", 2, &FuzzContext::MethodDestroyQp),
      by_ioctl("method_destroy_mr", 4, &FuzzContext::MethodDestroyMr),
      by_ioctl("method_reg_dmabuf", 8, &FuzzContext::MethodRegDmabuf),
      by_ioctl("method_advise_mr", 8, &FuzzContext::MethodAdviseMr),
      by_ioctl("method_query_mr", 4, &FuzzContext::MethodQueryMr),
      by_ioctl("method_query_port", 2, &FuzzContext::MethodQueryPort),
      by_ioctl("method_query_context", 2, &FuzzContext::MethodQueryContext),
      by_ioctl("method_query_gids", 2, &FuzzContext::MethodQueryGids),
      by_ioctl("method_info_handles", 3, &FuzzContext::MethodInfoHandles),
      by_ioctl("method_invoke_write", 12, &FuzzContext::MethodInvokeWrite),
      blind("create_ah", IB_USER_VERBS_CMD_CREATE_AH),
      blind("destroy_ah", IB_USER_VERBS_CMD_DESTROY_AH),
      blind("alloc_mw", IB_USER_VERBS_CMD_ALLOC_MW),
      blind("dealloc_mw", IB_USER_VERBS_CMD_DEALLOC_MW),
      blind("attach_mcast", IB_USER_VERBS_CMD_ATTACH_MCAST),
      blind("detach_mcast", IB_USER_VERBS_CMD_DETACH_MCAST),
      blind("create_srq", IB_USER_VERBS_CMD_CREATE_SRQ),
      blind("modify_srq", IB_USER_VERBS_CMD_MODIFY_SRQ),
      blind("query_srq", IB_USER_VERBS_CMD_QUERY_SRQ),
      blind("destroy_srq", IB_USER_VERBS_CMD_DESTROY_SRQ),
      blind("post_srq_recv", IB_USER_VERBS_CMD_POST_SRQ_RECV),
      blind("open_xrcd", IB_USER_VERBS_CMD_OPEN_XRCD),
      blind("close_xrcd", IB_USER_VERBS_CMD_CLOSE_XRCD),
      blind("create_xsrq", IB_USER_VERBS_CMD_CREATE_XSRQ),
      blind("open_qp", IB_USER_VERBS_CMD_OPEN_QP),
      blind("ex_create_flow", IB_USER_VERBS_EX_CMD_CREATE_FLOW, true),
      blind("ex_destroy_flow", IB_USER_VERBS_EX_CMD_DESTROY_FLOW, true),
      blind("ex_create_wq", IB_USER_VERBS_EX_CMD_CREATE_WQ, true),
      blind("ex_modify_wq", IB_USER_VERBS_EX_CMD_MODIFY_WQ, true),
      blind("ex_destroy_wq", IB_USER_VERBS_EX_CMD_DESTROY_WQ, true),
      blind("ex_create_rwq_ind_tbl", IB_USER_VERBS_EX_CMD_CREATE_RWQ_IND_TBL, true),
      blind("ex_destroy_rwq_ind_tbl", IB_USER_VERBS_EX_CMD_DESTROY_RWQ_IND_TBL, true),
      blind("ex_modify_cq", IB_USER_VERBS_EX_CMD_MODIFY_CQ, true),
  };
  return kinds;
}
