// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Memory regions.

#include "mr.h"

#include <array>
#include <cstring>

#include "memory.h"
#include "ops.h"

namespace mrlab {
namespace {

// A response of the kernel with the driver's data right behind it. The core's
// part may be 12 bytes long, where a member would be padded to 16.
template <typename Core>
class Response {
 public:
  Core* core() { return reinterpret_cast<Core*>(bytes_.data()); }
  std::size_t size() const { return bytes_.size(); }

  mrlab_reg_mr_resp driver() const {
    mrlab_reg_mr_resp driver;
    std::memcpy(&driver, bytes_.data() + sizeof(Core), sizeof(driver));
    return driver;
  }

 private:
  static constexpr std::size_t kSize = sizeof(Core) + sizeof(mrlab_reg_mr_resp);
  static_assert(kSize % 4 == 0, "the kernel counts words");
  alignas(std::uint64_t) std::array<std::byte, kSize> bytes_{};
};

static_assert(sizeof(ib_uverbs_reg_mr_resp) == 12);

}  // namespace

ibv_mr* Register(ibv_pd* pd, void* addr, std::size_t length, std::uint64_t iova, int access) {
  auto mr = Allocate<Mr>();
  if (!mr) return nullptr;
  UverbsCommand<ib_uverbs_reg_mr> command{};
  Response<ib_uverbs_reg_mr_resp> response;
  if (const int error = ibv_cmd_reg_mr(pd, addr, length, iova, access, &mr->verbs, &command,
                                       sizeof(command), response.core(), response.size())) {
    return Fail(error);
  }
  mr->stages = response.driver();
  return &mr.release()->verbs.mr;
}

// The core's method has no room for data of the driver: the stages stay unknown.
ibv_mr* RegisterDmabuf(ibv_pd* pd, std::uint64_t offset, std::size_t length, std::uint64_t iova,
                       int fd, int access) {
  auto mr = Allocate<Mr>();
  if (!mr) return nullptr;
  if (const int error =
          ibv_cmd_reg_dmabuf_mr(pd, offset, length, iova, fd, access, &mr->verbs, nullptr)) {
    return Fail(error);
  }
  return &mr.release()->verbs.mr;
}

int Reregister(verbs_mr* verbs, int flags, ibv_pd* pd, void* addr, std::size_t length, int access) {
  UverbsCommand<ib_uverbs_rereg_mr> command{};
  Response<ib_uverbs_rereg_mr_resp> response;
  if (const int error =
          ibv_cmd_rereg_mr(verbs, static_cast<std::uint32_t>(flags), addr, length,
                           reinterpret_cast<std::uintptr_t>(addr), access, pd, &command,
                           sizeof(command), response.core(), response.size())) {
    return error;
  }
  // Where the region was changed in place, those of its registration hold.
  if (const mrlab_reg_mr_resp stages = response.driver(); stages.size != 0) {
    reinterpret_cast<Mr*>(verbs)->stages = stages;
  }
  return 0;
}

int Deregister(verbs_mr* verbs) {
  if (const int error = ibv_cmd_dereg_mr(verbs)) return error;
  std::free(verbs);
  return 0;
}

}  // namespace mrlab
