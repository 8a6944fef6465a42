// Fuzzes the answers of a ClickHouse server, which may be anyone: what can be read is checked, and
// what passes the check makes a profile or an error. There is no crash.
//
// An input is a sequence of answers, each with its length before it (two bytes).
#include <cstddef>
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "base/bytes.h"
#include "store/clickhouse/group_reader.h"
#include "store/store.h"
#include "tests/fuzz/merge_slice.h"

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  namespace store = xenoscope::store;
  const xenoscope::Bytes input = std::as_bytes(std::span(data, size));
  std::vector<std::string> answers(store::GroupReader::kAnswers);
  size_t at = 0;
  for (std::string& answer : answers) {
    const size_t length = xenoscope::Load<uint16_t>(input, at).value_or(0);
    at += sizeof(uint16_t);
    const auto piece = xenoscope::Slice(input, at, length);
    if (!piece) break;
    answer = xenoscope::AsText(*piece);
    at += length;
  }
  store::GroupReader groups(std::move(answers));
  store::Dictionary dictionary;
  store::Slice slice;
  while (groups.Next(dictionary, slice)) {
    if (store::CheckSlice(slice, dictionary).ok()) Merge(slice, dictionary);
  }
  return 0;
}
