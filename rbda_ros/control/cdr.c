#include "cdr.h"

#include <stdlib.h>
#include <string.h>

static const size_t ORIGIN = 4; /* what positions are counted from */

static size_t aligned(size_t at, size_t size)
{
  const size_t offset = (at - ORIGIN) % size;
  return offset == 0 ? at : at + size - offset;
}

cdr_reader_t cdr_begin(const uint8_t *data, size_t size)
{
  cdr_reader_t reader = {data, size, ORIGIN, false, false};
  reader.failed = size < ORIGIN || data[0] != 0 || data[1] > 1;
  reader.swapped = !reader.failed && data[1] == 0;
  return reader;
}

/* The next `count` items of `size` bytes; NULL past the end. */
static const uint8_t *take(cdr_reader_t *reader, size_t size, size_t count)
{
  if (reader->failed) return NULL;
  const size_t at = aligned(reader->at, size);
  if (at > reader->size || count > (reader->size - at) / size) {
    reader->failed = true;
    return NULL;
  }
  reader->at = at + size * count;
  return reader->data + at;
}

uint32_t cdr_count(cdr_reader_t *reader)
{
  uint32_t count = 0;
  const uint8_t *at = take(reader, sizeof count, 1);
  if (at != NULL) memcpy(&count, at, sizeof count);
  return reader->swapped ? __builtin_bswap32(count) : count;
}

text_t cdr_text(cdr_reader_t *reader)
{
  const uint32_t size =
      cdr_count(reader); /* with the terminating zero; some writers leave it out */
  const uint8_t *at = take(reader, 1, size);
  if (at == NULL) return (text_t){"", 0};
  const bool terminated = size > 0 && at[size - 1] == 0;
  return (text_t){(const char *)at, size - terminated};
}

numbers_t cdr_fixed(cdr_reader_t *reader, size_t count)
{
  const uint8_t *at = take(reader, sizeof(double), count);
  return (numbers_t){at, at == NULL ? 0 : count, reader->swapped};
}

numbers_t cdr_numbers(cdr_reader_t *reader)
{
  const uint32_t count = cdr_count(reader);
  /* An empty sequence is not followed by padding. */
  if (count == 0) return (numbers_t){NULL, 0, false};
  return cdr_fixed(reader, count);
}

header_t cdr_header(cdr_reader_t *reader)
{
  const int32_t seconds = (int32_t)cdr_count(reader);
  const uint32_t nanoseconds = cdr_count(reader);
  const text_t frame_id = cdr_text(reader);
  return (header_t){seconds * INT64_C(1000000000) + nanoseconds, frame_id};
}

double number_at(numbers_t numbers, size_t k)
{
  uint64_t bits;
  double value;
  memcpy(&bits, numbers.at + sizeof bits * k, sizeof bits);
  if (numbers.swapped) bits = __builtin_bswap64(bits);
  memcpy(&value, &bits, sizeof value);
  return value;
}

bool read_joint_state(const uint8_t *data, size_t size, size_t names_end, joint_state_t *state)
{
  cdr_reader_t reader = cdr_begin(data, size);
  state->stamp = cdr_header(&reader).stamp;
  state->names_at = aligned(reader.at, sizeof(uint32_t));
  state->name_count = cdr_count(&reader);
  if (state->name_count > size) reader.failed = true; /* each takes four bytes at least */
  if (names_end != 0 && names_end <= size)
    reader.at = names_end;
  else
    for (uint32_t k = 0; k < state->name_count && !reader.failed; k++) (void)cdr_text(&reader);
  state->names_end = reader.at;
  state->position = cdr_numbers(&reader);
  state->velocity = cdr_numbers(&reader);
  state->effort = cdr_numbers(&reader);
  return !reader.failed;
}

cdr_reader_t begin_names(const uint8_t *data, const joint_state_t *state)
{
  cdr_reader_t reader = cdr_begin(data, state->names_end);
  reader.at = state->names_at + sizeof(uint32_t);
  return reader;
}

/* Writing: a message grows from its beginning; without memory, `data` is NULL and stays it. */

static void begin(template_t *made, size_t count)
{
  const uint8_t little_endian[] = {0, 1, 0, 0};
  *made = (template_t){.data = malloc(sizeof little_endian), .size = sizeof little_endian};
  made->count = count;
  if (made->data != NULL) memcpy(made->data, little_endian, sizeof little_endian);
}

/* Bytes at the next multiple of an alignment, where they begin; zeros where they are NULL. */
static size_t put(template_t *made, size_t alignment, const void *bytes, size_t size)
{
  const size_t at = aligned(made->size, alignment), end = at + size;
  uint8_t *data = made->data == NULL ? NULL : realloc(made->data, end);
  if (data == NULL) {
    free(made->data);
    made->data = NULL;
    return at;
  }
  memset(data + made->size, 0, end - made->size);
  if (bytes != NULL) memcpy(data + at, bytes, size);
  made->data = data;
  made->size = end;
  return at;
}

static void put_count(template_t *made, size_t count)
{
  const uint32_t value = (uint32_t)count;
  (void)put(made, sizeof value, &value, sizeof value);
}

static void put_text(template_t *made, const char *text)
{
  const size_t size = strlen(text) + 1;
  put_count(made, size);
  (void)put(made, 1, text, size);
}

/* Room for the numbers of a field, which are zero until they are written. */
static void put_field(template_t *made, int field, size_t count)
{
  if (count > 0) made->fields[field] = put(made, sizeof(double), NULL, sizeof(double) * count);
}

static void put_header(template_t *made, const char *frame_id)
{
  (void)put(made, 1, NULL, STAMP_SIZE);
  put_text(made, frame_id);
}

bool make_joint_state(template_t *made, const char *const *names, size_t count, int fields)
{
  begin(made, count);
  put_header(made, "");
  put_count(made, count);
  for (size_t k = 0; k < count; k++) put_text(made, names[k]);
  for (int field = 0; field < 3; field++) {
    const size_t numbers = fields & (1 << field) ? count : 0;
    put_count(made, numbers);
    put_field(made, field, numbers);
  }
  return made->data != NULL;
}

bool make_array(template_t *made, size_t count)
{
  begin(made, count);
  put_count(made, 0); /* dimensions of the layout */
  put_count(made, 0); /* its offset */
  put_count(made, count);
  put_field(made, 0, count);
  return made->data != NULL;
}

bool make_wrench(template_t *made, const char *frame_id)
{
  begin(made, 6);
  put_header(made, frame_id);
  put_field(made, 0, 6);
  return made->data != NULL;
}

void free_template(template_t *made)
{
  free(made->data);
  *made = (template_t){0};
}

void put_stamp(template_t *into, int64_t stamp)
{
  int64_t seconds = stamp / INT64_C(1000000000), rest = stamp % INT64_C(1000000000);
  if (rest < 0) {
    seconds--;
    rest += INT64_C(1000000000);
  }
  const int32_t sec = (int32_t)seconds;
  const uint32_t nanosec = (uint32_t)rest;
  memcpy(into->data + STAMP_AT, &sec, sizeof sec);
  memcpy(into->data + STAMP_AT + sizeof sec, &nanosec, sizeof nanosec);
}

void put_number(template_t *into, int field, size_t k, double value)
{
  memcpy(into->data + into->fields[field] + sizeof value * k, &value, sizeof value);
}
