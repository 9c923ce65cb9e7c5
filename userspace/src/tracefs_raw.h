// SPDX-License-Identifier: GPL-2.0 OR Linux-OpenIB
//
// The few calls of libtracefs that the capture needs, declared as their man
// pages have them. <tracefs/tracefs.h> of libtracefs 1.6 is C only: an inline
// function in it turns an int into an enum.

#ifndef MRSCOPE_TRACEFS_RAW_H_
#define MRSCOPE_TRACEFS_RAW_H_

extern "C" {

struct tracefs_cpu;
struct tracefs_instance;

tracefs_instance* tracefs_instance_create(const char* name);
int tracefs_instance_destroy(tracefs_instance* instance);
void tracefs_instance_free(tracefs_instance* instance);

tracefs_cpu* tracefs_cpu_alloc_fd(int fd, int subbuf_size, bool nonblock);
void tracefs_cpu_close(tracefs_cpu* cpu);
int tracefs_cpu_read(tracefs_cpu* cpu, void* buffer, bool nonblock);

}  // extern "C"

#endif  // MRSCOPE_TRACEFS_RAW_H_
