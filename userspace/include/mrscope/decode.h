// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// From the raw bytes of a trace event to a KernelRecord or a scheduler event.
// Fields are found by name once, when a decoder is made.

#ifndef MRSCOPE_DECODE_H_
#define MRSCOPE_DECODE_H_

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>

#include "mrscope/record.h"
#include "mrscope/result.h"
#include "mrscope/units.h"

struct tep_event;
struct tep_handle;

namespace mrscope {

// Knows the layout of each event that was added, by its id.
class EventDecoder {
 public:
  EventDecoder();
  ~EventDecoder();
  EventDecoder(EventDecoder&&) noexcept;
  EventDecoder& operator=(EventDecoder&&) noexcept;

  // events/header_page of tracefs, needed before reading raw buffers.
  Result<void> AddHeaderPage(std::string_view text);
  // What one read of a raw buffer gives at most, as the header page says.
  Bytes subbuffer_size() const;
  // The text of events/SYSTEM/NAME/format. Known: mrscope mr_reg and mr_dereg,
  // sched sched_process_{fork,exec,exit}, ftrace print. Fails where a field is
  // missing: the module and this program are of different versions.
  Result<void> AddFormat(std::string_view system, std::string_view format);

  // nullopt for an event that was not added or is too short.
  std::optional<CaptureEvent> Decode(std::uint64_t timestamp_ns,
                                     std::span<const std::byte> data) const;

 private:
  struct Impl;
  std::unique_ptr<Impl> impl_;
};

}  // namespace mrscope

#endif  // MRSCOPE_DECODE_H_
