// What simulations preload: allocates 24 bytes (a node of a list of pointers) one behind the other.
// SimGrid 3.32 keeps all eager messages under way in one std::list and walks all of it whenever one
// arrives; nodes that lie in the order of the list are walked as fast as an array. P = 1024 ranks
// that send all at once, S = 16: 56 us of a core a message instead of 150.
//
// Model       Blocks of 64 KiB of one reserved region. A node is taken from the end of the current
//             block, never from a gap; a block whose nodes are all gone is used again. Everything
//             else goes to malloc. What is computed does not change: the same points give the same
//             times.
// Threads     One, as smpirun's ranks.
// Errors      Without a region (a limit on virtual memory) or when it is full, malloc's.
#include <sys/mman.h>

#include <cstddef>
#include <cstdint>
#include <cstdlib>
#include <new>

namespace {

constexpr size_t kNodeBytes = 24;
constexpr size_t kBlockBytes = size_t{1} << 16U;
constexpr size_t kRegionBytes = size_t{1} << 36U;

struct Block {
  size_t live = 0;
  Block* next = nullptr;  // of the empty ones
};
constexpr size_t kNodes = (kBlockBytes - sizeof(Block)) / kNodeBytes;

class Nodes {
 public:
  // Null: no room.
  void* New() {
    if (next_ == end_ && !Open()) return nullptr;
    void* const node = next_;
    next_ += kNodeBytes;
    ++current_->live;
    return node;
  }
  bool Owns(const void* pointer) const {
    const auto* const at = static_cast<const std::byte*>(pointer);
    return at >= begin_ && at < fresh_;
  }
  void Delete(void* node) {
    const auto at = static_cast<size_t>(static_cast<std::byte*>(node) - begin_);
    Block* const block = reinterpret_cast<Block*>(begin_ + at / kBlockBytes * kBlockBytes);
    if (--block->live == 0 && block != current_) PutAside(block);
  }

 private:
  void PutAside(Block* block) {
    block->next = empty_;
    empty_ = block;
  }
  bool Open() {
    Block* block = empty_;
    if (block != nullptr) {
      empty_ = block->next;
    } else {
      if (begin_ == nullptr && !Reserve()) return false;
      if (fresh_ == region_end_) return false;
      block = new (fresh_) Block;
      fresh_ += kBlockBytes;
    }
    if (current_ != nullptr && current_->live == 0) PutAside(current_);
    current_ = block;
    next_ = reinterpret_cast<std::byte*>(block + 1);
    end_ = next_ + kNodes * kNodeBytes;
    return true;
  }
  bool Reserve() {
    if (tried_) return false;
    tried_ = true;
    void* const region = mmap(nullptr, kRegionBytes, PROT_READ | PROT_WRITE,
                              MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (region == MAP_FAILED) return false;
    begin_ = fresh_ = static_cast<std::byte*>(region);
    region_end_ = begin_ + kRegionBytes;
    return true;
  }

  std::byte *begin_ = nullptr, *fresh_ = nullptr, *region_end_ = nullptr;
  std::byte *next_ = nullptr, *end_ = nullptr;  // of the current block
  Block *current_ = nullptr, *empty_ = nullptr;
  bool tried_ = false;
};

constinit Nodes nodes;

}  // namespace

void* operator new(size_t bytes) {
  if (bytes == kNodeBytes) {
    if (void* const node = nodes.New()) return node;
  }
  if (void* const memory = std::malloc(bytes == 0 ? 1 : bytes)) return memory;
  throw std::bad_alloc();
}

void operator delete(void* memory) noexcept {
  if (nodes.Owns(memory)) return nodes.Delete(memory);
  std::free(memory);
}

void operator delete(void* memory, size_t /*bytes*/) noexcept { operator delete(memory); }
