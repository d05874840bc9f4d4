#include "mlxcel/tokenizer/split/string_matcher.h"

namespace mlxcel::tokenizer {

void StringMatcher::add(std::string_view text, int32_t value) {
  uint32_t node = root;
  for (char c : text) {
    auto byte = static_cast<unsigned char>(c);
    uint32_t next = nodes_[node].first_child;
    while (next != dead && nodes_[next].byte != byte) {
      next = nodes_[next].sibling;
    }
    if (next == dead) {
      next = static_cast<uint32_t>(nodes_.size());
      Node added;
      added.sibling = nodes_[node].first_child;
      added.depth = nodes_[node].depth + 1;
      added.byte = byte;
      nodes_.push_back(added);
      nodes_[node].first_child = next;
    }
    node = next;
  }
  if (node != root && nodes_[node].length == 0) {
    nodes_[node].value = value;
    nodes_[node].length = nodes_[node].depth;
  }
}

void StringMatcher::build() {
  from_root_.fill(dead);
  std::vector<uint32_t> queue;
  for (uint32_t n = nodes_[root].first_child; n != dead;
       n = nodes_[n].sibling) {
    from_root_[nodes_[n].byte] = n;
    nodes_[n].fail = nodes_[n].length != 0 ? dead : root;
    queue.push_back(n);
  }
  for (size_t i = 0; i < queue.size(); ++i) {
    for (uint32_t n = nodes_[queue[i]].first_child; n != dead;
         n = nodes_[n].sibling) {
      link(n, queue[i]);
      queue.push_back(n);
    }
  }
}

/// Behind a match nothing that begins later is of interest: such nodes fail
/// for good. A node without a match of its own takes over the one that ends
/// in the same place and begins later.
void StringMatcher::link(uint32_t at, uint32_t parent) {
  Node& node = nodes_[at];
  if (node.length != 0) {
    node.fail = dead;
    return;
  }
  uint32_t fail = nodes_[parent].fail;
  uint32_t target = dead;
  while (fail != dead) {
    target = child(fail, node.byte);
    if (target != dead) {
      break;
    }
    if (fail == root) {
      target = root;
      break;
    }
    fail = nodes_[fail].fail;
  }
  node.fail = fail == dead ? dead : target;
  if (node.fail != dead && nodes_[node.fail].length != 0) {
    node.value = nodes_[node.fail].value;
    node.length = nodes_[node.fail].length;
  }
}

uint32_t StringMatcher::child(uint32_t node, unsigned char byte) const {
  if (node == root) {
    return from_root_[byte];
  }
  uint32_t next = nodes_[node].first_child;
  while (next != dead && nodes_[next].byte != byte) {
    next = nodes_[next].sibling;
  }
  return next;
}

bool StringMatcher::find(std::string_view text, size_t from, Match& match)
    const {
  bool found = false;
  uint32_t node = root;
  for (size_t at = from; at < text.size(); ++at) {
    auto byte = static_cast<unsigned char>(text[at]);
    if (node == root) {
      node = from_root_[byte];
      if (node == dead) {
        node = root;
        continue;
      }
    } else {
      uint32_t next = child(node, byte);
      while (next == dead && node != root) {
        node = nodes_[node].fail;
        if (node == dead) {
          return found;
        }
        next = child(node, byte);
      }
      node = next == dead ? root : next;
    }
    const Node& reached = nodes_[node];
    if (reached.length != 0) {
      found = true;
      match = {at + 1 - reached.length, at + 1, reached.value};
    }
  }
  return found;
}

}  // namespace mlxcel::tokenizer
