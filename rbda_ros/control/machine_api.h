/* The machine as another extension module uses it: a capsule of `Machine.api`. Each function takes
 * the lock of the machine, and none needs the interpreter. */
#ifndef RBDA_ROS_MACHINE_API_H
#define RBDA_ROS_MACHINE_API_H

#include "machine.h"

#define MACHINE_API "rbda_ros.control.machine_api"

typedef struct {
  machine_t *machine;
  bool (*feed)(machine_t *machine, const sink_t *sink, int topic, const uint8_t *data, size_t size,
               moment_t moment);
  int64_t (*tick)(machine_t *machine, const sink_t *sink, moment_t moment);
  void (*stop)(machine_t *machine, const sink_t *sink, moment_t moment);
} machine_api_t;

#endif
