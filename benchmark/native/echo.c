/* A node that sends back each JointState as it came: the least that any node can do; and one that
 * only takes them. */
#include <unistd.h>

#include "endpoint.h"

/* Take what comes until the parent ends, and publish it again where `out` is not NULL. */
static int run_node(const void *type, const char *name, const char *out, const char *in)
{
  rcl_context_t context;
  rcl_node_t node;
  endpoint_t end;
  start_node(name, &context, &node);
  open_endpoint(&node, type, out, in, &end);
  rcl_wait_set_t set = rcl_get_zero_initialized_wait_set();
  CHECK(rcl_wait_set_init(&set, 1, 0, 0, 0, 0, 0, &context, rcl_get_default_allocator()));
  rcl_serialized_message_t message = empty_message();
  const pid_t parent = getppid();
  while (getppid() == parent) {
    if (!wait_for(&set, &end.subscription, INT64_C(1000000000))) continue;
    while (take(&end.subscription, &message))
      if (out != NULL) CHECK(rcl_publish_serialized_message(&end.publisher, &message, NULL));
  }
  return 0;
}

int run_echo(const void *type)
{
  return run_node(type, "echo", "/echo/feedforward", "/echo/joint_states");
}

int run_listener(const void *type, const char *topic)
{
  return run_node(type, "listener", NULL, topic);
}
