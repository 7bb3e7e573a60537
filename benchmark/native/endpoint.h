/* A publisher (where `out` is not NULL) and a subscription of sensor_msgs/JointState, best effort,
 * serialized, over rcl. */
#ifndef ENDPOINT_H
#define ENDPOINT_H

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "rcl/error_handling.h"
#include "rcl/rcl.h"
#include "rosidl_runtime_c/message_type_support_struct.h"

#define CHECK(call) check((call), #call)

static inline void check(rcl_ret_t result, const char *what)
{
  if (result == RCL_RET_OK) return;
  fprintf(stderr, "%s: %s\n", what, rcl_get_error_string().str);
  exit(1);
}

typedef struct {
  rcl_publisher_t publisher;
  rcl_subscription_t subscription;
} endpoint_t;

static inline void start_node(const char *name, rcl_context_t *context, rcl_node_t *node)
{
  rcl_init_options_t options = rcl_get_zero_initialized_init_options();
  CHECK(rcl_init_options_init(&options, rcl_get_default_allocator()));
  *context = rcl_get_zero_initialized_context();
  CHECK(rcl_init(0, NULL, &options, context));
  *node = rcl_get_zero_initialized_node();
  const rcl_node_options_t node_options = rcl_node_get_default_options();
  CHECK(rcl_node_init(node, name, "", context, &node_options));
}

static inline void open_endpoint(rcl_node_t *node, const void *type, const char *out,
                                 const char *in, endpoint_t *end)
{
  rcl_publisher_options_t publishing = rcl_publisher_get_default_options();
  rcl_subscription_options_t listening = rcl_subscription_get_default_options();
  publishing.qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  listening.qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  end->publisher = rcl_get_zero_initialized_publisher();
  end->subscription = rcl_get_zero_initialized_subscription();
  if (out != NULL) CHECK(rcl_publisher_init(&end->publisher, node, type, out, &publishing));
  CHECK(rcl_subscription_init(&end->subscription, node, type, in, &listening));
}

static inline rcl_serialized_message_t empty_message(void)
{
  rcl_serialized_message_t message = rmw_get_zero_initialized_serialized_message();
  const rcutils_allocator_t allocator = rcutils_get_default_allocator();
  if (rmw_serialized_message_init(&message, 65536, &allocator) != RMW_RET_OK) exit(1);
  return message;
}

/* Wait until something has come, for so long [ns] at most. */
static inline bool wait_for(rcl_wait_set_t *set, const rcl_subscription_t *subscription,
                            int64_t nanoseconds)
{
  CHECK(rcl_wait_set_clear(set));
  CHECK(rcl_wait_set_add_subscription(set, subscription, NULL));
  const rcl_ret_t result = rcl_wait(set, nanoseconds);
  if (result == RCL_RET_OK) return true;
  rcl_reset_error();
  return false;
}

static inline bool take(const rcl_subscription_t *subscription, rcl_serialized_message_t *message)
{
  if (rcl_take_serialized_message(subscription, message, NULL, NULL) == RCL_RET_OK) return true;
  rcl_reset_error();
  return false;
}

#endif
