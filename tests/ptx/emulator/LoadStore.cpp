//===- LoadStore.cpp - loads and stores -----------------------------------===//
//
// Part of llmc, under the Apache License v2.0 with LLVM Exceptions.
// SPDX-License-Identifier: Apache-2.0 WITH LLVM-exception
//
//===----------------------------------------------------------------------===//

#include "tests/ptx/emulator/Access.h"
#include "tests/ptx/emulator/Builder.h"
#include "tests/ptx/emulator/Lanes.h"

#include <bit>

namespace llmc::ptx {

namespace {
enum Order { orderAcquire = 1, orderRelease = 2 };

/// Host pointers of the lanes' operands. False after an error. The request that is counted is that
/// of `counted`, none if it is empty.
bool resolve(Warp &w, const Inst &i, uint32_t mask, uint32_t counted, unsigned size, bool isStore,
             uint8_t *(&pointers)[32], const uint8_t *values) {
  uint64_t addresses[32];
  Machine &m = *w.machine;
  const Options &o = m.options;
  if (i.wideAddress) {
    const uint64_t *a = reg<uint64_t>(w, i.a);
    for (unsigned l = 0; l < 32; ++l)
      addresses[l] = a[l] + i.offset;
  } else {
    const uint32_t *a = reg<uint32_t>(w, i.a);
    for (unsigned l = 0; l < 32; ++l)
      addresses[l] = a[l] + i.offset;
  }
  Space space = i.space;
  if (space == Space::Generic) {
    space = spaceOf(addresses[std::countr_zero(mask)]);
    for (uint32_t rest = mask; rest; rest &= rest - 1)
      if (spaceOf(addresses[std::countr_zero(rest)]) != space)
        space = Space::Generic;
  }
  if (space == Space::Const)
    space = Space::Global;
  if (space != Space::Global && space != Space::Generic)
    for (uint64_t &address : addresses)
      address = uint32_t(address);
  if (o.count && counted) {
    if (space == Space::Global)
      countGlobal(w, addresses, counted, size, isStore);
    else if (space == Space::Shared)
      countShared(w, addresses, counted, size);
    else if (space == Space::Local)
      m.counters.localBytes += uint64_t(std::popcount(counted)) * size;
  }
  unsigned flags = (isStore ? accessWrite : accessRead) | (i.strong ? accessStrong : 0);
  // All lanes in one stretch of memory that has been found before.
  bool quick = !o.checkRaces && !o.checkInit && !i.strong;
  if (quick && (space == Space::Global || space == Space::Shared)) {
    uint64_t low = ~uint64_t(0), high = 0, bits = 0;
    for (unsigned l = 0; l < 32; ++l) {
      uint64_t a = mask >> l & 1 ? addresses[l] : addresses[std::countr_zero(mask)];
      low = std::min(low, a);
      high = std::max(high, a);
      bits |= a;
    }
    uint64_t base = i.cacheLow, end = i.cacheHigh, delta = 0;
    if (space == Space::Shared) {
      base = sharedStart;
      end = sharedStart + w.cta->shared.size();
      delta = reinterpret_cast<uint64_t>(w.cta->shared.data()) - sharedStart;
    }
    if (low >= base && high + size <= end && high < end && !(bits & (size - 1))) {
      for (unsigned l = 0; l < 32; ++l)
        pointers[l] = reinterpret_cast<uint8_t *>(addresses[l] + delta);
      if (o.count && space == Space::Global && !isStore) {
        Allocation *a = m.lastAllocation;
        if (!a || low < a->base || low >= a->end())
          a = m.lastAllocation = m.memory.find(low);
        for (uint32_t rest = mask; rest; rest &= rest - 1)
          a->touched.set(addresses[std::countr_zero(rest)] - a->base, size);
      }
      return true;
    }
  }
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    pointers[l] =
        access(w, i, l, space, addresses[l], size, flags, values ? values + l * size : nullptr);
    if (!pointers[l])
      return false;
  }
  return true;
}

uint64_t keyOf(const Warp &w, const Inst &i, unsigned lane) {
  uint64_t address = addressOf(w, i, lane);
  Space space = i.space == Space::Generic ? spaceOf(address) : i.space;
  if (space == Space::Shared)
    return sharedWindow | uint64_t(w.cta->linear) << 20 | (address & 0xfffff);
  return address;
}

/// T: as in memory; R: as in the register.
template <class T, class R> void load(Warp &w, const Inst &i, uint32_t mask) {
  uint8_t *pointers[32];
  if (!resolve(w, i, mask, mask, sizeof(T) * i.count, false, pointers, nullptr))
    return;
  const uint32_t *slots = w.program->pool.data() + i.vec;
  if (mask == ~0u) {
    for (unsigned k = 0; k < i.count; ++k) {
      R *d = reg<R>(w, slots[k]);
      for (unsigned l = 0; l < 32; ++l) {
        T value;
        memcpy(&value, pointers[l] + k * sizeof(T), sizeof(T));
        d[l] = R(value);
      }
    }
  } else {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned l = std::countr_zero(rest);
      for (unsigned k = 0; k < i.count; ++k) {
        T value;
        memcpy(&value, pointers[l] + k * sizeof(T), sizeof(T));
        reg<R>(w, slots[k])[l] = R(value);
      }
    }
  }
  if (i.strong && w.machine->options.checkRaces)
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned l = std::countr_zero(rest);
      const SharedKnowledge &there = w.machine->atomicKnowledge[keyOf(w, i, l)];
      if (i.sub & orderAcquire)
        acquire(w, l, there);
      else
        joinInto(w.acquired[l], there);
    }
}

template <class T, class R> void store(Warp &w, const Inst &i, uint32_t mask) {
  uint8_t *pointers[32];
  uint8_t values[32 * 32];
  const uint32_t *slots = w.program->pool.data() + i.vec;
  unsigned size = sizeof(T) * i.count;
  for (unsigned k = 0; k < i.count; ++k) {
    const R *a = reg<R>(w, slots[k]);
    for (unsigned l = 0; l < 32; ++l) {
      T value = T(a[l]);
      memcpy(values + l * size + k * sizeof(T), &value, sizeof(T));
    }
  }
  Machine &m = *w.machine;
  if (i.strong && m.options.checkRaces)
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned l = std::countr_zero(rest);
      SharedKnowledge mine = i.sub & orderRelease ? publish(w, l) : w.fenced[l];
      if (mine)
        m.atomicKnowledge[keyOf(w, i, l)] = mine;
    }
  if (i.strong)
    m.progress(*w.cta);
  // A lane's value is in place before the next lane's is checked: two may write the same.
  if (m.options.checkRaces) {
    for (uint32_t rest = mask; rest; rest &= rest - 1) {
      unsigned l = std::countr_zero(rest);
      if (!resolve(w, i, 1u << l, rest == mask ? mask : 0, size, true, pointers, values))
        return;
      memcpy(pointers[l], values + l * size, size);
    }
    return;
  }
  if (!resolve(w, i, mask, mask, size, true, pointers, values))
    return;
  for (uint32_t rest = mask; rest; rest &= rest - 1) {
    unsigned l = std::countr_zero(rest);
    memcpy(pointers[l], values + l * size, size);
  }
}

template <class T, class R> Handler pick(bool isStore) {
  return isStore ? store<T, R> : load<T, R>;
}

Handler pickType(Type type, bool isStore) {
  switch (type) {
  case Type::U8:
  case Type::B8:
    return pick<uint8_t, uint16_t>(isStore);
  case Type::S8:
    return pick<int8_t, uint16_t>(isStore);
  case Type::U16:
  case Type::B16:
  case Type::S16:
  case Type::F16:
  case Type::BF16:
    return pick<uint16_t, uint16_t>(isStore);
  case Type::U32:
  case Type::B32:
  case Type::S32:
  case Type::F32:
    return pick<uint32_t, uint32_t>(isStore);
  case Type::U64:
  case Type::B64:
  case Type::S64:
  case Type::F64:
    return pick<uint64_t, uint64_t>(isStore);
  default:
    return nullptr;
  }
}
} // namespace

/// Takes what says how caches are used: no meaning here.
static void takeCacheHints(Modifiers &m) {
  m.takePrefix("L1::");
  m.takePrefix("L2::");
  for (const char *name : {"ca", "cg", "cs", "lu", "cv", "wb", "wt", "nc"})
    m.take(name);
}

bool decodeMemory(Builder &b, Modifiers &m) {
  std::string_view base = b.insn->base();
  const auto &o = b.insn->operands;
  if (base == "prefetch" || base == "prefetchu" || base == "discard" || base == "applypriority") {
    if (base == "discard")
      return b.fail("destroys data: not supported");
    m.takePrefix("L1");
    m.takePrefix("L2");
    m.take("global");
    m.take("local");
    m.take("tensormap");
    b.emit(b.make(Class::Other, nothing));
    return true;
  }
  bool isStore = base == "st";
  Inst i = b.make(Class::Other);
  bool acquires = m.take("acquire"), releases = m.take("release");
  bool relaxed = m.take("relaxed"), isVolatile = m.take("volatile"), mmio = m.take("mmio");
  m.take("weak");
  for (const char *scope : {"cta", "cluster", "gpu", "sys"})
    m.take(scope);
  i.strong = acquires || releases || relaxed || isVolatile || mmio;
  i.sub = (acquires ? orderAcquire : 0) | (releases ? orderRelease : 0);
  for (std::string_view name : b.insn->modifiers)
    if (name == "shared::cluster")
      return b.fail("is for clusters, which are not supported");
  if (m.take("global"))
    i.space = Space::Global;
  else if (m.take("shared") || m.take("shared::cta"))
    i.space = Space::Shared;
  else if (m.take("local"))
    i.space = Space::Local;
  else if (m.take("param") || m.take("param::entry") || m.take("param::func"))
    i.space = Space::Param;
  else if (m.take("const"))
    i.space = Space::Const;
  takeCacheHints(m);
  unsigned n = m.take("v2") ? 2 : m.take("v4") ? 4 : m.take("v8") ? 8 : 1;
  Type type = m.type();
  size_t wanted = 2;
  // A cache policy as a last operand.
  if (o.size() == 3)
    wanted = 3;
  if (!b.wantType(type) || !b.want(wanted, wanted))
    return false;
  i.run = pickType(type, isStore);
  if (!i.run || (n == 8 && sizeOf(type) != 4) || n * sizeOf(type) > 32)
    return false;
  i.count = n;
  const Operand &memory = isStore ? o[0] : o[1];
  const Operand &data = isStore ? o[1] : o[0];
  if (!b.address(memory, i))
    return false;
  if ((n > 1) != (data.kind == Operand::Vector) || (n > 1 && data.elements.size() != n))
    return b.fail("has another number of values than it says");
  std::vector<uint32_t> slots;
  for (unsigned k = 0; k < n; ++k) {
    const Operand &element = n > 1 ? data.elements[k] : data;
    uint32_t slot;
    if (isStore ? !b.source(element, type, slot, true) : !b.widerDestination(element, type, slot))
      return false;
    slots.push_back(slot);
  }
  i.vec = b.program.pool.size();
  b.program.pool.insert(b.program.pool.end(), slots.begin(), slots.end());
  switch (i.space) {
  case Space::Shared:
    i.cls = isStore ? Class::StoreShared : Class::LoadShared;
    break;
  case Space::Param:
    i.cls = Class::LoadParam;
    break;
  case Space::Local:
    i.cls = Class::Local;
    break;
  default:
    i.cls = isStore ? Class::StoreGlobal : Class::LoadGlobal;
    break;
  }
  b.emit(i);
  return true;
}

} // namespace llmc::ptx
