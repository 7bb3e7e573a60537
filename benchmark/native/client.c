/* Publishes joint states at 1 kHz to one node after the other, and times their answers. */
#include <math.h>
#include <time.h>

#include "endpoint.h"

enum { MOST = 1 << 16, SENT = 4096 };
static const int64_t PERIOD = 1000000, SECOND = 1000000000;

static int64_t now(clockid_t clock)
{
  struct timespec t;
  clock_gettime(clock, &t);
  return t.tv_sec * SECOND + t.tv_nsec;
}

typedef struct {
  int64_t stamp, began;
} sent_t;

typedef struct {
  endpoint_t end;
  rcl_wait_set_t set;
  rcl_serialized_message_t out, in;
  size_t position_at, joints;
  sent_t sent[SENT];
  double *trips;
  size_t count;
} client_t;

static void send(client_t *self, size_t k)
{
  const int64_t stamp = now(CLOCK_REALTIME);
  const int32_t seconds = (int32_t)(stamp / SECOND);
  const uint32_t rest = (uint32_t)(stamp % SECOND);
  memcpy(self->out.buffer + 4, &seconds, 4);
  memcpy(self->out.buffer + 8, &rest, 4);
  const double x = 0.2 * sin((double)(stamp % (1000 * SECOND)) * 1e-9);
  for (size_t i = 0; i < self->joints; i++)
    memcpy(self->out.buffer + self->position_at + 8 * i, &x, 8);
  self->sent[k % SENT] = (sent_t){stamp, now(CLOCK_MONOTONIC)};
  CHECK(rcl_publish_serialized_message(&self->end.publisher, &self->out, NULL));
}

static void receive(client_t *self)
{
  while (take(&self->end.subscription, &self->in)) {
    const int64_t arrived = now(CLOCK_MONOTONIC);
    int32_t seconds;
    uint32_t rest;
    memcpy(&seconds, self->in.buffer + 4, 4);
    memcpy(&rest, self->in.buffer + 8, 4);
    const int64_t stamp = seconds * SECOND + rest;
    for (size_t k = 0; k < SENT; k++) {
      if (self->sent[k].stamp != stamp) continue;
      if (self->count < MOST) self->trips[self->count++] = (double)(arrived - self->sent[k].began);
      self->sent[k].stamp = 0;
    }
  }
}

/* Round trips [ns] of some messages (`bytes`, with positions at a place), into `trips`; how many
 * were answered. The first `warm_up` are not counted. */
int run_client(const void *type, const char *to, const char *from, const void *bytes, int size,
               int position_at, int joints, int messages, int warm_up, double *trips)
{
  static rcl_context_t context;
  static rcl_node_t node;
  static bool started;
  if (!started) start_node("client", &context, &node);
  started = true;
  client_t *self = calloc(1, sizeof *self);
  self->trips = trips;
  self->position_at = (size_t)position_at;
  self->joints = (size_t)joints;
  self->out = empty_message();
  self->in = empty_message();
  memcpy(self->out.buffer, bytes, (size_t)size);
  self->out.buffer_length = (size_t)size;
  open_endpoint(&node, type, to, from, &self->end);
  self->set = rcl_get_zero_initialized_wait_set();
  CHECK(rcl_wait_set_init(&self->set, 1, 0, 0, 0, 0, 0, &context, rcl_get_default_allocator()));

  for (size_t heard = 0; heard == 0;) {
    size_t listens = 0;
    CHECK(rcl_publisher_get_subscription_count(&self->end.publisher, &listens));
    CHECK(rcl_subscription_get_publisher_count(&self->end.subscription, &heard));
    heard = heard && listens;
    wait_for(&self->set, &self->end.subscription, 10 * PERIOD);
  }
  int64_t next = now(CLOCK_MONOTONIC);
  for (int k = 0; k < messages + warm_up; k++) {
    if (k == warm_up) self->count = 0;
    send(self, (size_t)k);
    next += PERIOD;
    for (int64_t left; (left = next - now(CLOCK_MONOTONIC)) > 0;)
      if (wait_for(&self->set, &self->end.subscription, left)) receive(self);
  }
  const int64_t end = now(CLOCK_MONOTONIC) + 100 * PERIOD;
  for (int64_t left; (left = end - now(CLOCK_MONOTONIC)) > 0;)
    if (wait_for(&self->set, &self->end.subscription, left)) receive(self);

  const int count = (int)self->count;
  CHECK(rcl_wait_set_fini(&self->set));
  CHECK(rcl_subscription_fini(&self->end.subscription, &node));
  CHECK(rcl_publisher_fini(&self->end.publisher, &node));
  CHECK(rmw_serialized_message_fini(&self->out));
  CHECK(rmw_serialized_message_fini(&self->in));
  free(self);
  return count;
}
