// Reads MSCCL++ execution plans: first how large and how deep the text is, then a tree, then what
// each reference means.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "machine.h"
#include "mscclpp_file.h"
#include "tutti/base/json_path.h"

namespace tutti::lower {
namespace {

using Json = nlohmann::json;

constexpr size_t kMaxBytes = size_t{1} << 28;
constexpr int64_t kMaxValues = int64_t{1} << 23;
constexpr size_t kMaxJsonDepth = 16;
constexpr int64_t kMaxRanks = 4096, kMaxChunks = int64_t{1} << 40;

// clang-format off
constexpr PpOperationName kNames[] = {
    {"nop", PpKind::kNop},
    {"barrier", PpKind::kBarrier},
    {"signal", PpKind::kSignal},
    {"rlxsignal", PpKind::kSignal, true},
    {"wait", PpKind::kWait},
    {"rlxwait", PpKind::kWait, true},
    {"flush", PpKind::kFlush},
    {"sem_acquire", PpKind::kAcquire},
    {"sem_release", PpKind::kRelease},
    {"pipeline", PpKind::kPipeline},
    {"put", PpKind::kMove, false, false, false, "l", "r"},
    {"pws", PpKind::kMove, false, true, false, "l", "r"},
    {"pwsf", PpKind::kMove, false, true, true, "l", "r"},
    {"get", PpKind::kMove, false, false, false, "r", "l"},
    {"copy", PpKind::kMove, false, false, false, "l", "l", true},
    {"re", PpKind::kReduce, false, false, false, "l", "l"},
    {"res", PpKind::kReduce, false, false, false, "l", "lr"},
    {"rre", PpKind::kReduce, false, false, false, "lr", "l"},
    {"rres", PpKind::kReduce, false, false, false, "lr", "lr"},
    {"ppkt", PpKind::kMove, false, false, false, "l", "P"},
    {"rppkt", PpKind::kReduce, false, false, false, "p", "P"},
    {"cpkt", PpKind::kMove, false, false, false, "l", "p", true},
    {"upkt", PpKind::kMove, false, false, false, "p", "l", true},
    {"repkt", PpKind::kReduce, false, false, false, "lp", "l"},
    {"respkt", PpKind::kReduce, false, false, false, "lp", "lP"},
    {"recpkt", PpKind::kReduce, false, false, false, "lp", "lp"},
    {"recspkt", PpKind::kReduce, false, false, false, "lp", "lpP"},
    {"glres", PpKind::kReduce, false, false, false, "m", "m", true},
    {"gstore", PpKind::kMove, false, false, false, "l", "m", true},
};
// clang-format on

// Stops at the first sign that the text is too large for a tree.
class Guard : public nlohmann::json_sax<Json> {
 public:
  bool null() override { return Count(); }
  bool boolean(bool) override { return Count(); }
  bool number_integer(int64_t) override { return Count(); }
  bool number_unsigned(uint64_t) override { return Count(); }
  bool number_float(double, const std::string&) override { return Count(); }
  bool string(std::string&) override { return Count(); }
  bool binary(Json::binary_t&) override { return Fail(ErrorCode::kCorrupt, "binary values"); }
  bool start_object(size_t) override { return Open(false); }
  bool start_array(size_t) override { return Open(true); }
  bool end_object() override { return Close(); }
  bool end_array() override { return Close(); }
  bool key(std::string& name) override {
    return path_.Key(name) || Fail(ErrorCode::kCorrupt, path_.Twice(name));
  }
  bool parse_error(size_t position, const std::string&, const Json::exception&) override {
    return Fail(ErrorCode::kCorrupt, fmt::format("no JSON: syntax error at byte {}", position));
  }
  const std::optional<Error>& error() const { return error_; }

 private:
  bool Fail(ErrorCode code, std::string message) {
    error_ = Error{code, std::move(message)};
    return false;
  }
  bool Count() {
    path_.Value();
    return Within();
  }
  bool Within() {
    return ++values_ <= kMaxValues ||
           Fail(ErrorCode::kInvalidArgument,
                fmt::format("too large to judge: more than {} values up to {}", kMaxValues,
                            path_.Text()));
  }
  bool Open(bool is_array) {
    path_.Open(is_array);
    if (!Within()) return false;
    return path_.depth() <= kMaxJsonDepth ||
           Fail(ErrorCode::kInvalidArgument,
                fmt::format("nested deeper than {} levels", kMaxJsonDepth));
  }
  bool Close() {
    path_.Close();
    return true;
  }

  JsonPath path_;
  int64_t values_ = 0;
  std::optional<Error> error_;
};

// Values of a tree. The first that is missing or of the wrong type makes an error; what is read
// from there on is empty.
class Values {
 public:
  const std::string& error() const { return error_; }

  const Json& At(const Json& object, const char* key, const std::string& where,
                 Json::value_t type) {
    const Json* value = Find(object, key);
    if (value == nullptr) return Fail(where, fmt::format("has no key '{}'", key));
    if (value->type() != type &&
        !(type == Json::value_t::number_integer && value->is_number_integer()))
      return Fail(where, fmt::format("'{}' is of type {}", key, value->type_name()));
    return *value;
  }
  const Json& Array(const Json& object, const char* key, const std::string& where) {
    return At(object, key, where, Json::value_t::array);
  }
  // Empty where it is absent.
  const Json& ArrayIfAny(const Json& object, const char* key, const std::string& where) {
    return Find(object, key) == nullptr ? empty_ : Array(object, key, where);
  }
  std::string Text(const Json& object, const char* key, const std::string& where) {
    const Json& value = At(object, key, where, Json::value_t::string);
    return value.is_string() ? value.get<std::string>() : "";
  }
  bool Bool(const Json& object, const char* key, const std::string& where) {
    const Json& value = At(object, key, where, Json::value_t::boolean);
    return value.is_boolean() && value.get<bool>();
  }
  int64_t Number(const Json& object, const char* key, const std::string& where, int64_t most) {
    return NumberOf(At(object, key, where, Json::value_t::number_integer),
                    fmt::format("{}: '{}'", where, key), most);
  }
  int64_t NumberOf(const Json& value, const std::string& where, int64_t most) {
    if (!error_.empty()) return 0;
    if (!value.is_number_integer() ||
        (value.is_number_unsigned() && value.get<uint64_t>() > static_cast<uint64_t>(most)) ||
        value.get<int64_t>() < 0 || value.get<int64_t>() > most) {
      Fail(where, fmt::format("must be a whole number from 0 to {}", most));
      return 0;
    }
    return value.get<int64_t>();
  }
  std::vector<int32_t> Numbers(const Json& object, const char* key, const std::string& where) {
    std::vector<int32_t> numbers;
    for (const Json& value : ArrayIfAny(object, key, where))
      numbers.push_back(static_cast<int32_t>(NumberOf(value, fmt::format("{}: '{}'", where, key),
                                                      std::numeric_limits<int32_t>::max())));
    return numbers;
  }
  static const Json* Find(const Json& object, const char* key) {
    if (!object.is_object()) return nullptr;
    const auto at = object.find(key);
    return at == object.end() ? nullptr : &*at;
  }
  const Json& Fail(const std::string& where, const std::string& what) {
    if (error_.empty()) error_ = where + ": " + what;
    return empty_;
  }

 private:
  const Json empty_ = Json::array();
  std::string error_;
};

class MscclppReader {
 public:
  explicit MscclppReader(std::vector<PlanFault>& faults) : faults_(faults) {}

  Result<PpFile> Read(const Json& root) {
    PpFile file;
    file.name = values_.Text(root, "name", "plan");
    file.collective = values_.Text(root, "collective", "plan");
    file.protocol = values_.Text(root, "protocol", "plan");
    file.in_place = values_.Bool(root, "inplace", "plan");
    if (values_.error().empty() && file.protocol != "Simple" && file.protocol != "LL")
      Fault("plan", fmt::format("protocol '{}' is none of Simple, LL", file.protocol));
    ReadCallLimits(root);
    const Json& gpus = values_.Array(root, "gpus", "plan");
    if (gpus.empty()) values_.Fail("plan", "'gpus' is empty");
    if (static_cast<int64_t>(gpus.size()) > kMaxRanks)
      values_.Fail(
          "plan", fmt::format("{} gpus are too many to judge; at most {}", gpus.size(), kMaxRanks));
    file.ranks.resize(gpus.size());
    // References lead to buffers of other ranks, so that those come first.
    for (size_t g = 0; g < gpus.size() && values_.error().empty(); ++g)
      ReadRank(gpus[g], g, file.ranks[g]);
    for (size_t g = 0; g < gpus.size() && values_.error().empty(); ++g)
      ReadBlocks(gpus[g], g, file);
    if (!values_.error().empty()) return InvalidArgument(values_.error());
    return file;
  }

 private:
  void Fault(const std::string& where, const std::string& what) {
    if (faults_.size() < kMaxFaults) faults_.push_back({where + ": " + what});
  }

  // What each call is held to, where the file says it.
  void ReadCallLimits(const Json& root) {
    constexpr int64_t kMaxAlignment = int64_t{1} << 30, kMaxThreads = 1024;
    for (const auto& [key, most] : {std::pair("buffer_alignment", kMaxAlignment),
                                    std::pair("num_threads_per_block", kMaxThreads)})
      if (Values::Find(root, key) != nullptr && values_.Number(root, key, "plan", most) == 0 &&
          values_.error().empty())
        Fault("plan", fmt::format("'{}' is 0", key));
    const uint64_t least = BytesIfAny(root, "min_message_size", 0);
    const uint64_t most =
        BytesIfAny(root, "max_message_size", std::numeric_limits<uint64_t>::max());
    if (least > most)
      Fault("plan", fmt::format("takes calls from {} to {} bytes, which none is", least, most));
  }
  uint64_t BytesIfAny(const Json& object, const char* key, uint64_t otherwise) {
    const Json* value = Values::Find(object, key);
    if (value == nullptr) return otherwise;
    if (value->is_number_unsigned()) return value->get<uint64_t>();
    values_.Fail("plan", fmt::format("'{}' must be a whole number of bytes", key));
    return otherwise;
  }

  // What a rank declares, before its operations.
  struct Declared {
    struct Remote {
      int32_t rank = 0;
      Buffer buffer = Buffer::kInput;
      std::vector<PpChannelType> types;
    };
    struct Multicast {
      Buffer buffer = Buffer::kInput;
      int64_t chunks = 0;
      std::vector<int32_t> ranks;
    };
    std::vector<Remote> remotes;
    std::vector<Multicast> multicasts;
  };

  PpChannelType TypeOf(const std::string& text, const std::string& where) {
    if (text == "memory") return PpChannelType::kMemory;
    if (text == "port") return PpChannelType::kPort;
    if (text == "switch") return PpChannelType::kSwitch;
    if (text != "none" && values_.error().empty())
      Fault(where, fmt::format("channel type '{}' is none of memory, port, switch", text));
    return PpChannelType::kNone;
  }
  Buffer BufferOf(const std::string& text, const std::string& where) {
    if (text == "o") return Buffer::kOutput;
    if (text == "s") return Buffer::kScratch;
    if (text != "i" && values_.error().empty())
      Fault(where, fmt::format("buffer '{}' is none of i, o, s", text));
    return Buffer::kInput;
  }
  bool IsRank(int64_t rank, size_t self, size_t ranks, const std::string& where) {
    if (rank < static_cast<int64_t>(ranks) && rank != static_cast<int64_t>(self)) return true;
    Fault(where, rank == static_cast<int64_t>(self) ? fmt::format("gpu {} is its own peer", rank)
                                                    : fmt::format("there is no gpu {}", rank));
    return false;
  }

  void ReadRank(const Json& gpu, size_t g, PpRank& rank) {
    const std::string where = fmt::format("gpu {}", g);
    const int64_t id = values_.Number(gpu, "id", where, kMaxRanks);
    if (values_.error().empty() && id != static_cast<int64_t>(g))
      Fault(where, fmt::format("has the id {}; the k-th gpu must be gpu k", id));
    constexpr std::array<const char*, 3> kKeys{"input_chunks", "output_chunks", "scratch_chunks"};
    for (size_t b = 0; b < 3; ++b)
      rank.chunks[b] = values_.Number(gpu, kKeys[b], where, kMaxChunks);
    for (const Json& semaphore : values_.ArrayIfAny(gpu, "semaphores", where))
      rank.semaphores.push_back(values_.Number(semaphore, "init_value", where, 1 << 30));
    if (static_cast<int64_t>(rank.semaphores.size()) > kPpMaxSemaphores)
      Fault(where,
            fmt::format("{} semaphores; MSCCL++ has {}", rank.semaphores.size(), kPpMaxSemaphores));
  }

  void ReadBlocks(const Json& gpu, size_t g, PpFile& file) {
    PpRank& rank = file.ranks[g];
    const std::string where = fmt::format("gpu {}", g);
    Declared declared;
    for (const Json& channel : values_.ArrayIfAny(gpu, "channels", where))
      ReadChannels(channel, g, file.ranks.size(), rank, declared);
    for (const Json& remote : values_.ArrayIfAny(gpu, "remote_buffers", where)) {
      const int64_t owner = values_.Number(remote, "rank", where + " remote_buffers", kMaxRanks);
      Declared::Remote& to = declared.remotes.emplace_back();
      to.buffer = BufferOf(values_.Text(remote, "type", where + " remote_buffers"), where);
      for (const Json& type :
           values_.Array(remote, "access_channel_types", where + " remote_buffers"))
        to.types.push_back(TypeOf(type.is_string() ? type.get<std::string>() : "", where));
      if (values_.error().empty() && IsRank(owner, g, file.ranks.size(), where))
        to.rank = static_cast<int32_t>(owner);
    }
    const Json& blocks = values_.Array(gpu, "threadblocks", where);
    for (size_t t = 0; t < blocks.size() && values_.error().empty(); ++t) {
      const std::string place = fmt::format("gpu {} tb {}", g, t);
      if (values_.Number(blocks[t], "id", place, kMaxRanks) != static_cast<int64_t>(t))
        Fault(place, "its id is not its place in the list");
      BlockReader{*this, file, declared, g, t}.Read(blocks[t], rank.blocks.emplace_back());
    }
  }

  void ReadChannels(const Json& channel, size_t g, size_t ranks, PpRank& rank, Declared& declared) {
    const std::string where = fmt::format("gpu {} channels", g);
    const PpChannelType type = TypeOf(values_.Text(channel, "channel_type", where), where);
    if (type == PpChannelType::kSwitch) {
      for (const Json& group : values_.Array(channel, "rank_groups", where)) {
        Declared::Multicast& to = declared.multicasts.emplace_back();
        to.buffer = BufferOf(values_.Text(channel, "buffer_type", where), where);
        to.chunks = values_.Number(group, "size", where, kMaxChunks);
        to.ranks = values_.Numbers(group, "ranks", where);
        for (const int32_t member : to.ranks)
          if (static_cast<size_t>(member) >= ranks) {
            Fault(where, fmt::format("there is no gpu {}", member));
            to.ranks.clear();
            break;
          }
      }
      return;
    }
    for (const int32_t peer : values_.Numbers(channel, "connected_to", where))
      if (type != PpChannelType::kNone && IsRank(peer, g, ranks, where))
        rank.peers[static_cast<size_t>(type)].push_back(peer);
  }

  // The numbers that the operations of one thread block use.
  struct BlockReader {
    MscclppReader& reader;
    const PpFile& file;
    const Declared& declared;
    size_t g, t;
    std::array<std::vector<int32_t>, 3> channels = {};  // by type
    std::array<std::vector<int32_t>, 2> buffers = {};

    Values& values() const { return reader.values_; }
    const PpRank& rank() const { return file.ranks[g]; }

    void Read(const Json& block, PpBlock& to) {
      const std::string where = fmt::format("gpu {} tb {}", g, t);
      for (const Json& list : values().ArrayIfAny(block, "channels", where)) ReadList(list, where);
      for (const Json& list : values().ArrayIfAny(block, "remote_buffer_refs", where))
        ReadBuffers(list, where);
      const Json& operations = values().Array(block, "ops", where);
      size_t count = operations.size();
      for (size_t i = 0; i < operations.size() && values().error().empty(); ++i) {
        to.operations.push_back(ReadOperation(operations[i], PpWhere(g, t, i), true));
        count += to.operations.back().inner.size();
      }
      if (count > kPpMaxOperations)
        reader.Fault(where, fmt::format("{} operations; MSCCL++ takes at most {} a thread block",
                                        count, kPpMaxOperations));
    }

    void ReadList(const Json& list, const std::string& where) {
      const PpChannelType type = reader.TypeOf(values().Text(list, "channel_type", where), where);
      if (type == PpChannelType::kNone) return;
      const size_t declared_count = type == PpChannelType::kSwitch
                                        ? declared.multicasts.size()
                                        : rank().peers[static_cast<size_t>(type)].size();
      std::vector<int32_t>& to = channels[static_cast<size_t>(type)];
      for (const int32_t id : values().Numbers(list, "channel_ids", where)) {
        if (static_cast<size_t>(id) >= declared_count)
          reader.Fault(where, fmt::format("channel {} of {} that the gpu has", id, declared_count));
        to.push_back(id);
      }
      if (to.size() > kPpMaxChannels)
        reader.Fault(where, fmt::format("{} channels of one type; MSCCL++ takes at most {}",
                                        to.size(), kPpMaxChannels));
    }

    void ReadBuffers(const Json& list, const std::string& where) {
      const PpChannelType type =
          reader.TypeOf(values().Text(list, "access_channel_type", where), where);
      if (type != PpChannelType::kMemory && type != PpChannelType::kPort) return;
      std::vector<int32_t>& to = buffers[static_cast<size_t>(type)];
      for (const int32_t id : values().Numbers(list, "remote_buffer_ids", where)) {
        const auto at = static_cast<size_t>(id);
        if (at >= declared.remotes.size())
          reader.Fault(where, fmt::format("remote buffer {} of {} that the gpu has", id,
                                          declared.remotes.size()));
        else if (const auto& types = declared.remotes[at].types;
                 std::find(types.begin(), types.end(), type) == types.end())
          reader.Fault(where, fmt::format("remote buffer {} is not for this type of channel", id));
        to.push_back(id);
      }
      if (to.size() > kPpMaxChannels)
        reader.Fault(where, fmt::format("{} remote buffers; MSCCL++ takes at most {}", to.size(),
                                        kPpMaxChannels));
    }

    PpOperation ReadOperation(const Json& json, const std::string& where, bool outermost) {
      PpOperation operation;
      const std::string name = values().Text(json, "name", where);
      const auto* row =
          std::find_if(std::begin(kNames), std::end(kNames),
                       [&](const PpOperationName& known) { return known.name == name; });
      if (row == std::end(kNames)) {
        values().Fail(where, fmt::format("unknown operation '{}'", name));
        return operation;
      }
      operation.name = row;
      if (Values::Find(json, "channel_type") != nullptr)
        operation.type = reader.TypeOf(values().Text(json, "channel_type", where), where);
      ReadChannelIds(json, where, operation);
      if (const Json* info = Values::Find(json, "tbg_info"); info != nullptr) {
        operation.slice = values().Number(*info, "tb_id", where, 1 << 20);
        operation.slices = std::max<int64_t>(1, values().Number(*info, "tbg_size", where, 1 << 20));
        if (operation.slice >= operation.slices)
          reader.Fault(where, fmt::format("slice {} of {}", operation.slice, operation.slices));
      }
      ReadReferences(json, "src_buff", row->src, where, operation, operation.src);
      ReadReferences(json, "dst_buff", row->dst, where, operation, operation.dst);
      if (row->kind == PpKind::kMove || row->kind == PpKind::kReduce) CheckLists(where, operation);
      ReadSync(json, where, operation);
      if (row->kind == PpKind::kPipeline) ReadPipeline(json, where, outermost, operation);
      ++reader.num_operations_;
      return operation;
    }

    void ReadChannelIds(const Json& json, const std::string& where, PpOperation& operation) {
      const std::vector<int32_t> ids = values().Numbers(json, "channel_ids", where);
      if (ids.size() > kPpMaxChannelsOfOperation)
        reader.Fault(where, fmt::format("{} channels; MSCCL++ takes at most {} an operation",
                                        ids.size(), kPpMaxChannelsOfOperation));
      const PpKind kind = operation.name->kind;
      const bool needs = kind == PpKind::kSignal || kind == PpKind::kWait || kind == PpKind::kFlush;
      const bool known =
          operation.type == PpChannelType::kMemory || operation.type == PpChannelType::kPort;
      if (needs && (ids.empty() || !known)) reader.Fault(where, "names no memory or port channel");
      if (kind == PpKind::kFlush && operation.type == PpChannelType::kMemory)
        reader.Fault(where, "only port channels are flushed");
      if (!known) return;
      const std::vector<int32_t>& own = channels[static_cast<size_t>(operation.type)];
      for (const int32_t id : ids) {
        if (static_cast<size_t>(id) < own.size())
          operation.channels.push_back(own[static_cast<size_t>(id)]);
        else
          reader.Fault(where,
                       fmt::format("channel {} of {} that the thread block has", id, own.size()));
      }
    }

    void ReadSync(const Json& json, const std::string& where, PpOperation& operation) {
      const PpKind kind = operation.name->kind;
      if (kind == PpKind::kBarrier) {
        operation.barrier = values().Number(json, "barrier_id", where, 1 << 20);
        operation.barrier_blocks = values().Number(json, "num_threadblocks", where, 1 << 20);
        if (operation.barrier >= kPpMaxBarriers || operation.barrier_blocks < 1)
          reader.Fault(
              where, fmt::format("barrier {} of {} thread blocks; MSCCL++ has barriers 0 "
                                 "to {}",
                                 operation.barrier, operation.barrier_blocks, kPpMaxBarriers - 1));
      }
      if (kind != PpKind::kAcquire && kind != PpKind::kRelease) return;
      operation.semaphores = values().Numbers(json, "semaphore_ids", where);
      for (const int32_t id : operation.semaphores)
        if (static_cast<size_t>(id) >= rank().semaphores.size())
          reader.Fault(where, fmt::format("semaphore {} of {} that the gpu has", id,
                                          rank().semaphores.size()));
    }

    void ReadPipeline(const Json& json, const std::string& where, bool outermost,
                      PpOperation& operation) {
      if (!outermost) {
        values().Fail(where, "a pipeline within a pipeline");
        return;
      }
      const Json& context = values().At(json, "iter_context", where, Json::value_t::object);
      operation.pipeline_chunks = values().Number(context, "num_chunks", where, 1 << 20);
      values().Number(context, "unit_size", where, int64_t{1} << 40);
      const Json& inner = values().Array(json, "ops", where);
      if (inner.size() > kPpMaxOperations)
        return values().Fail(where, "too many operations in a pipeline"), void();
      for (size_t i = 0; i < inner.size() && values().error().empty(); ++i)
        operation.inner.push_back(
            ReadOperation(inner[i], fmt::format("{} inner op {}", where, i), false));
    }

    void ReadReferences(const Json& json, const char* key, std::string_view roles,
                        const std::string& where, const PpOperation& operation,
                        std::vector<PpReference>& to) {
      const Json& list = values().ArrayIfAny(json, key, where);
      if (roles.empty()) return;
      if (list.size() > kPpMaxLocalBuffers + kPpMaxChannelsOfOperation) {
        reader.Fault(where, fmt::format("{} buffers in '{}'; MSCCL++ takes at most {}", list.size(),
                                        key, kPpMaxLocalBuffers + kPpMaxChannelsOfOperation));
        return;
      }
      for (size_t i = 0; i < list.size() && values().error().empty(); ++i)
        ReadReference(list[i], roles[std::min(i, roles.size() - 1)],
                      fmt::format("{} {}[{}]", where, key, i), operation, to.emplace_back());
    }

    void ReadReference(const Json& json, char role, const std::string& where,
                       const PpOperation& operation, PpReference& to) {
      to.role = role;
      to.index = values().Number(json, "index", where, kMaxChunks);
      to.size = values().Number(json, "size", where, kMaxChunks);
      if (!values().error().empty()) return;
      const bool resolved = role == 'l' || role == 'p' ? Local(json, where, to)
                            : role == 'm'              ? Multicast(json, where, to)
                                                       : Remote(json, where, operation, to);
      if (!resolved) return;
      if ((role == 'p' || role == 'P') && to.buffer != Buffer::kScratch)
        reader.Fault(where, "packets lie in scratch only");
      for (const int32_t owner : to.ranks) {
        const int64_t chunks =
            file.ranks[static_cast<size_t>(owner)].chunks[static_cast<size_t>(to.buffer)];
        if (to.size >= 1 && to.index + to.size <= chunks) continue;
        // In place one buffer may stand for both.
        if (file.in_place && chunks == 0 && to.buffer != Buffer::kScratch && to.size >= 1) continue;
        reader.Fault(where, fmt::format("{}[{}, {}) is outside the buffer of {} chunks of gpu {}",
                                        "ios"[static_cast<size_t>(to.buffer)], to.index,
                                        to.index + to.size, chunks, owner));
        return;
      }
    }
    bool Local(const Json& json, const std::string& where, PpReference& to) {
      if (Values::Find(json, "type") == nullptr)
        return reader.Fault(where, "must be a buffer of this gpu"), false;
      to.buffer = reader.BufferOf(values().Text(json, "type", where), where);
      to.ranks = {static_cast<int32_t>(g)};
      return true;
    }
    bool Remote(const Json& json, const std::string& where, const PpOperation& operation,
                PpReference& to) {
      if (Values::Find(json, "buffer_id") == nullptr)
        return reader.Fault(where, "must be a remote buffer"), false;
      const auto id = static_cast<size_t>(values().Number(json, "buffer_id", where, 1 << 30));
      if (operation.type != PpChannelType::kMemory && operation.type != PpChannelType::kPort)
        return reader.Fault(where, "a remote buffer without a memory or port channel type"), false;
      const std::vector<int32_t>& own = buffers[static_cast<size_t>(operation.type)];
      if (id >= own.size() || static_cast<size_t>(own[id]) >= declared.remotes.size())
        return reader.Fault(
                   where, fmt::format("buffer {} of {} that the thread block has", id, own.size())),
               false;
      const Declared::Remote& remote = declared.remotes[static_cast<size_t>(own[id])];
      to.buffer = remote.buffer;
      to.ranks = {remote.rank};
      return true;
    }
    bool Multicast(const Json& json, const std::string& where, PpReference& to) {
      if (Values::Find(json, "switch_channel_id") == nullptr)
        return reader.Fault(where, "must be a switch channel"), false;
      const auto id =
          static_cast<size_t>(values().Number(json, "switch_channel_id", where, 1 << 30));
      const std::vector<int32_t>& own = channels[2];
      if (id >= own.size() || static_cast<size_t>(own[id]) >= declared.multicasts.size())
        return reader.Fault(where, fmt::format("switch channel {} of {} that the thread block has",
                                               id, own.size())),
               false;
      const Declared::Multicast& group = declared.multicasts[static_cast<size_t>(own[id])];
      to.buffer = group.buffer;
      to.ranks = group.ranks;
      if (to.ranks.empty()) return reader.Fault(where, "a multicast to no gpu"), false;
      return true;
    }

    void CheckLists(const std::string& where, const PpOperation& operation) {
      const PpOperationName& name = *operation.name;
      const size_t sources = operation.src.size(), targets = operation.dst.size();
      if (sources == 0 || targets < std::min<size_t>(name.dst.size(), 2))
        return reader.Fault(where, fmt::format("{} with {} sources and {} destinations", name.name,
                                               sources, targets));
      if (name.single && (sources > 1 || targets > 1))
        reader.Fault(where, fmt::format("{} takes one source and one destination", name.name));
      if (name.kind == PpKind::kMove && sources != targets)
        reader.Fault(where, fmt::format("{} sources and {} destinations", sources, targets));
      for (const std::vector<PpReference>* list : {&operation.src, &operation.dst})
        for (const PpReference& reference : *list)
          if (reference.size != operation.src.front().size &&
              (name.kind == PpKind::kReduce || name.single))
            return reader.Fault(where, "buffers of different sizes");
      if (name.kind != PpKind::kMove || sources != targets) return;
      for (size_t i = 0; i < sources; ++i)
        if (operation.src[i].size != operation.dst[i].size)
          return reader.Fault(where, "a source and its destination differ in size");
      CheckPorts(where, operation);
    }
    // A port channel leads to one rank, and the put goes there whatever its buffer is.
    void CheckPorts(const std::string& where, const PpOperation& operation) {
      const PpOperationName& name = *operation.name;
      if (name.src == "r" && operation.type == PpChannelType::kPort)
        return reader.Fault(where, "port channels cannot get");
      if (name.signals && operation.type != PpChannelType::kPort)
        return reader.Fault(where, fmt::format("{} is for port channels", name.name));
      if (operation.type == PpChannelType::kMemory && name.src != "r")
        // A thread block copies from the buffer that the first source names.
        for (const PpReference& source : operation.src)
          if (source.buffer != operation.src.front().buffer)
            return reader.Fault(where, "the sources of one put lie in different buffers");
      if (operation.type != PpChannelType::kPort) return;
      if (operation.channels.size() < operation.dst.size())
        return reader.Fault(where, "fewer channels than destinations");
      for (size_t i = 0; i < operation.dst.size(); ++i) {
        const auto channel = static_cast<size_t>(operation.channels[i]);
        const std::vector<int32_t>& peers = rank().peers[1];
        if (!operation.dst[i].ranks.empty() && channel < peers.size() &&
            peers[channel] != operation.dst[i].ranks.front())
          reader.Fault(where, fmt::format("puts into a buffer of gpu {} over a channel to gpu {}",
                                          operation.dst[i].ranks.front(), peers[channel]));
      }
    }
  };

  std::vector<PlanFault>& faults_;
  Values values_;
  int64_t num_operations_ = 0;

 public:
  int64_t num_operations() const { return num_operations_; }
};

}  // namespace

std::string PpWhere(size_t rank, size_t block, size_t operation) {
  return fmt::format("gpu {} tb {} op {}", rank, block, operation);
}

Result<PpFile> ReadMscclppPlan(std::string_view json, std::vector<PlanFault>& faults) {
  if (json.size() > kMaxBytes)
    return InvalidArgument(
        fmt::format("too large to judge: {} bytes, at most {}", json.size(), kMaxBytes));
  Guard guard;
  if (!Json::sax_parse(json, &guard)) return tl::unexpected(*guard.error());
  const Json root = Json::parse(json, nullptr, false);
  if (!root.is_object()) return InvalidArgument("no plan: the outermost value is no object");
  MscclppReader reader(faults);
  Result<PpFile> file = reader.Read(root);
  if (file) file->num_operations = reader.num_operations();
  return file;
}

}  // namespace tutti::lower
