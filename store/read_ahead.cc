#include "store/read_ahead.h"

#include <cstddef>
#include <thread>
#include <utility>

#include "base/error.h"

namespace xenoscope::store {
namespace {

// A slice may have some MB.
constexpr size_t kMostAhead = 4;

// Returns the keys from number `sent` on, and adds their number to it.
template <typename Key, typename Number>
std::vector<Key> KeysFrom(const KeyTable<Key, Number>& keys, size_t& sent) {
  const std::vector<Key>& all = keys.all();
  std::vector<Key> more(all.begin() + static_cast<ptrdiff_t>(sent), all.end());
  sent = all.size();
  return more;
}

template <typename Key, typename Number>
void AddKeys(const std::vector<Key>& more, KeyTable<Key, Number>& keys) {
  for (const Key& key : more) keys.Intern(key);
}

}  // namespace

absl::Status ReadAhead::Take(Slice& slice, const Dictionary& dictionary) {
  Item item{std::move(slice),
            {KeysFrom(dictionary.vcpus, vcpus_), KeysFrom(dictionary.contexts, contexts_),
             KeysFrom(dictionary.codes, codes_)}};
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return stopped_ || ready_.size() < kMostAhead; });
  if (stopped_) return absl::CancelledError();
  ready_.push_back(std::move(item));
  if (!free_.empty()) {
    slice = std::move(free_.back());
    free_.pop_back();
  }
  changed_.notify_all();
  return absl::OkStatus();
}

void ReadAhead::End(absl::Status status) {
  const std::lock_guard lock(mutex_);
  read_status_ = std::move(status);
  ended_ = true;
  changed_.notify_all();
}

bool ReadAhead::Next(Item& item) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, [this] { return ended_ || !ready_.empty(); });
  if (ready_.empty()) return false;
  free_.push_back(std::move(item.slice));
  item = std::move(ready_.front());
  ready_.pop_front();
  changed_.notify_all();
  return true;
}

void ReadAhead::Stop() {
  const std::lock_guard lock(mutex_);
  stopped_ = true;
  changed_.notify_all();
}

absl::Status ReadAhead::VisitAll(const Visitor& visit) {
  Dictionary dictionary;
  Item item;
  while (Next(item)) {
    AddKeys(item.keys.vcpus, dictionary.vcpus);
    AddKeys(item.keys.contexts, dictionary.contexts);
    AddKeys(item.keys.codes, dictionary.codes);
    XENOSCOPE_RETURN_IF_ERROR(visit(item.slice, dictionary));
  }
  return absl::OkStatus();
}

absl::Status ReadAhead::Run(const std::function<absl::Status(const Sink&)>& read,
                            const Visitor& visit) {
  std::thread reader([&] {
    End(read(
        [this](Slice& slice, const Dictionary& dictionary) { return Take(slice, dictionary); }));
  });
  const absl::Status visited = VisitAll(visit);
  Stop();
  reader.join();
  return visited.ok() ? read_status_ : visited;
}

}  // namespace xenoscope::store
