// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// Memory of the verbs objects. It comes zeroed, since libibverbs reads fields
// that no command has filled in, and without exceptions, which must not reach C.

#ifndef MRLAB_PROVIDER_MEMORY_H_
#define MRLAB_PROVIDER_MEMORY_H_

#include <cerrno>
#include <cstddef>
#include <cstdlib>
#include <memory>
#include <type_traits>

namespace mrlab {

struct Free {
  void operator()(void* memory) const { std::free(memory); }
};

template <typename T>
using Owned = std::unique_ptr<T, Free>;

// Null with errno ENOMEM if there is no memory.
template <typename T>
Owned<T> Allocate() {
  static_assert(std::is_trivial_v<T>, "zeroed memory is no such object");
  return Owned<T>(static_cast<T*>(std::calloc(1, sizeof(T))));
}

// What a verb that returns a pointer returns on failure.
inline std::nullptr_t Fail(int error) {
  errno = error;
  return nullptr;
}

}  // namespace mrlab

#endif  // MRLAB_PROVIDER_MEMORY_H_
