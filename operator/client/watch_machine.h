// How a local copy of one kind's objects is kept true, as a pure state machine: no I/O, no clock. A driver
// asks it what to do (next), does that, and tells it what came (handle); what handle() returns is for an
// ObjectStore, in that order.
//
//   NeedsStream ──opened──▶ InitialEvents ──end bookmark──▶ Watching ──cut, silent──▶ NeedsWatch ──opened──▶
//       │ refused                │ ERROR, ignored             │ 410                     │ 410        Watching
//       ▼                        ▼                            ▼                         ▼
//   NeedsList ──last page──▶ NeedsWatch                     back to the start (NeedsStream, or NeedsList)
//
// Note [Nothing missed, nothing doubled]: a watch is always opened from the version of the last list,
// bookmark or event, so a stream that breaks loses nothing; where the server no longer has that version
// (410), everything is listed again and the store finds the difference. An event that isn't newer than the
// last one is a repetition and is dropped.
#pragma once

#include <random>
#include <string>
#include <variant>
#include <vector>

#include "operator/client/api_client.h"
#include "operator/client/clock.h"

namespace coxswain {

// The defaults are for an API server that is reached over a network.
struct WatchSettings {
  // First try one streaming request (WatchList) instead of pages: the server needs less memory for it.
  bool streaming_list = true;
  int64_t page_size = 500;  // objects in a page of a list; 0: all in one
  // Asked of the server, and up to as much again so that the streams of all clients don't end together; 0: no
  // limit.
  std::chrono::seconds server_timeout{300};
  // A stream that brings nothing for this long may be dead without a sign, and is opened anew. Servers send a
  // bookmark about once a minute. 0: such a stream can't be.
  Duration max_silence = std::chrono::seconds(150);
  // A server that ignores sendInitialEvents never says that the list is over: this long after its last event,
  // or this long at all, the list is taken by pages.
  Duration initial_silence = std::chrono::seconds(10);
  Duration initial_limit = std::chrono::seconds(60);
  // After a failure: doubled with each one in a row; a quarter more or less, so that clients don't come back
  // together. A stream that lasts `healthy_after` ends the row.
  Duration backoff_base = std::chrono::milliseconds(200);
  Duration backoff_max = std::chrono::seconds(30);
  Duration healthy_after = std::chrono::seconds(5);
};

// For MemoryApi, whose streams cannot die.
WatchSettings in_process_watch_settings();

// --- What the driver is to do
struct ListNextPage {
  ListOptions options;
};
struct OpenWatch {
  WatchOptions options;  // without on_ready, which is the driver's
};
// Take the stream's next event; `until` is when to say TimePassed if none comes.
struct Receive {
  TimePoint until;
};
struct Rest {
  TimePoint until;
};
using WatchAction = std::variant<ListNextPage, OpenWatch, Receive, Rest>;

// --- What came
struct WatchOpened {};
struct StreamEnded {};
struct TimePassed {};
// ObjectList, WatchOpened, ApiError: answers to ListNextPage and OpenWatch.
using WatchInput = std::variant<ObjectList, WatchOpened, ApiError, WatchEvent, StreamEnded, TimePassed>;

// --- What the store is to take in
struct ListBegins {};  // also where an earlier list was given up
struct Listed {
  Json object;
};
struct ListEnds {  // what was not listed since it began is gone
  std::string version;
};
struct Written {
  Json object;
};
struct Deleted {
  Json object;  // its last state
};
struct Reached {  // nothing happened up to this version but what was told
  std::string version;
};
using StoreChange = std::variant<ListBegins, Listed, ListEnds, Written, Deleted, Reached>;

// Used by one thread.
class WatchMachine {
 public:
  // The same seed gives the same jitter.
  WatchMachine(WatchSettings settings, std::string label_selector, bool metadata_only, uint64_t seed);

  WatchAction next(TimePoint now) const;
  // An input that doesn't answer what next() asked for is ignored.
  std::vector<StoreChange> handle(WatchInput input, TimePoint now);
  // Whether a stream is in use; where not, the driver closes the one it has.
  bool receiving() const;

 private:
  struct NeedsStream {};
  struct InitialEvents {
    TimePoint opened;
    TimePoint last_event;
    // Version of the last change. "": so far only what there was, which comes in any order.
    std::string last_change{};
  };
  struct NeedsList {
    std::string continue_token;  // "": the first page
    bool whole = false;          // in one page: the server has forgotten an earlier page's snapshot
  };
  struct NeedsWatch {
    std::string version;     // to go on from
    std::string last_event;  // version of the last event or list; bookmarks don't count
    std::chrono::seconds server_timeout;
  };
  struct Watching {
    std::string version;
    std::string last_event;
    TimePoint opened;
    TimePoint heard;  // from when on its silence counts
    TimePoint ends;   // the server should have ended it by then
  };
  using State = std::variant<NeedsStream, InitialEvents, NeedsList, NeedsWatch, Watching>;
  using Changes = std::vector<StoreChange>;

  Changes on(ObjectList& list, TimePoint now);
  Changes on(const WatchOpened&, TimePoint now);
  Changes on(const ApiError& error, TimePoint now);
  Changes on(WatchEvent& event, TimePoint now);
  Changes on(const StreamEnded&, TimePoint now);
  Changes on(const TimePassed&, TimePoint now);
  Changes on_initial(InitialEvents& state, WatchEvent& event, TimePoint now);
  Changes on_live(Watching& state, WatchEvent& event, TimePoint now);
  void on_stream_error(const ApiError& error, TimePoint now);

  State start() const;
  NeedsWatch watch_from(std::string version, std::string last_event);
  TimePoint silent_at() const;
  void start_again(TimePoint now);
  void give_up_streaming();
  // What may be tried again at once the first time, and after a back-off from then on.
  void stumble(TimePoint now);
  void back_off(TimePoint now, std::optional<std::chrono::seconds> at_least = std::nullopt);
  double random();

  const WatchSettings settings_;
  const std::string label_selector_;
  const bool metadata_only_;
  std::minstd_rand engine_;
  TimePoint not_before_{};
  int failures_ = 0;         // in a row
  int stream_failures_ = 0;  // of streaming lists in a row
  State state_;              // after what start() reads
};

}  // namespace coxswain
