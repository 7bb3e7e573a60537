/* Messages of a topic as they come, serialized. Without the interpreter. */
#ifndef RBDA_ROS_SUBSCRIPTION_H
#define RBDA_ROS_SUBSCRIPTION_H

#include <stdbool.h>

#include "rcl/node.h"
#include "rcl/subscription.h"
#include "rosidl_runtime_c/message_type_support_struct.h"

/* `on_news` is called with `of` whenever something may have come. False with an error of rcl. */
bool listen_to(rcl_node_t *node, const rosidl_message_type_support_t *type, const char *topic,
               size_t depth, rmw_event_callback_t on_news, const void *of,
               rcl_subscription_t *subscription);
/* Whether there was one. */
bool take_from(const rcl_subscription_t *subscription, rcl_serialized_message_t *message);
void stop_listening(rcl_node_t *node, rcl_subscription_t *subscription);

#endif
