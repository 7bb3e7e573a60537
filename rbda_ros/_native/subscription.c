#include "subscription.h"

#include "rcl/error_handling.h"

bool listen_to(rcl_node_t *node, const rosidl_message_type_support_t *type, const char *topic,
               size_t depth, rmw_event_callback_t on_news, const void *of,
               rcl_subscription_t *subscription)
{
  rcl_subscription_options_t options = rcl_subscription_get_default_options();
  options.qos.depth = depth;
  options.qos.reliability = RMW_QOS_POLICY_RELIABILITY_BEST_EFFORT;
  *subscription = rcl_get_zero_initialized_subscription();
  if (rcl_subscription_init(subscription, node, type, topic, &options) != RCL_RET_OK) return false;
  if (rcl_subscription_set_on_new_message_callback(subscription, on_news, of) == RCL_RET_OK)
    return true;
  (void)!rcl_subscription_fini(subscription, node);
  return false;
}

bool take_from(const rcl_subscription_t *subscription, rcl_serialized_message_t *message)
{
  if (rcl_take_serialized_message(subscription, message, NULL, NULL) == RCL_RET_OK) return true;
  rcl_reset_error(); /* there is none, or ROS is being shut down */
  return false;
}

void stop_listening(rcl_node_t *node, rcl_subscription_t *subscription)
{
  (void)!rcl_subscription_set_on_new_message_callback(subscription, NULL, NULL);
  if (rcl_subscription_fini(subscription, node) != RCL_RET_OK) rcl_reset_error();
}
