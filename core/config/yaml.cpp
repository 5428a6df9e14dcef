// The event handler that builds the tree, and the guards around yaml-cpp.
//
// yaml-cpp recurses once per level and reports a level before it enters it, so the handler's depth
// check bounds its stack. Its scanner queues tokens while it does not know whether a `[` opens a
// key; the input buffer below bounds that. Refusals leave through it as an exception of ours.
#include "core/config/yaml.hpp"

#include <yaml-cpp/eventhandler.h>
#include <yaml-cpp/exceptions.h>
#include <yaml-cpp/parser.h>

#include <algorithm>
#include <istream>
#include <map>
#include <memory>
#include <new>
#include <optional>
#include <streambuf>
#include <unordered_map>
#include <utility>
#include <vector>

#include "core/base/utf8.hpp"
#include "core/config/source_text.hpp"
#include "core/config/yaml_scalar.hpp"

namespace dovetail::core {
namespace {

struct Refused {
  std::string message;
};

/// The text and its places.
class Source {
 public:
  Source(std::string_view text, std::string name)
      : text_(text), name_(std::make_shared<const std::string>(std::move(name))) {
    line_starts_.push_back(0);
    if (!text.ends_with('\n')) text_ += '\n';  // yaml-cpp takes a last word without it for a key
    for (size_t i = 0; i < text.size(); ++i) {
      if (text[i] == '\n') line_starts_.push_back(i + 1);
    }
  }

  Origin origin(const YAML::Mark& mark) const {
    return {name_, std::max(mark.line, 0) + 1, std::max(mark.column, 0) + 1};
  }

  std::string_view line(int32_t zero_based) const {
    if (zero_based < 0 || static_cast<size_t>(zero_based) >= line_starts_.size()) return {};
    const std::string_view rest = text().substr(line_starts_[static_cast<size_t>(zero_based)]);
    return rest.substr(0, rest.find('\n'));
  }

  /// The column of a tab in the blanks that start this line, or -1.
  int32_t tab_in_indentation(int32_t zero_based) const {
    const std::string_view text = line(zero_based);
    const size_t tab = text.find('\t');
    const size_t content = text.find_first_not_of(" \t\r");
    if (tab == std::string_view::npos || content == std::string_view::npos) return -1;
    return tab < content ? static_cast<int32_t>(tab) : -1;
  }

  std::string_view text() const { return text_; }
  const std::string& name() const { return *name_; }

 private:
  std::string text_;
  std::shared_ptr<const std::string> name_;
  std::vector<size_t> line_starts_;
};

/// Hands the text to yaml-cpp in pieces and refuses more when it reads on and on without an event.
class Feeder : public std::streambuf {
 public:
  explicit Feeder(const Source& source) : source_(source) {}
  void saw_event() { since_event_ = 0; }

 protected:
  int_type underflow() override {
    if (since_event_ > kYamlMaxValueBytes) {
      throw Refused{source_.name() +
                    ": one value (or one bracket that never closes) has more than " +
                    std::to_string(kYamlMaxValueBytes) + " bytes"};
    }
    constexpr size_t kPieceBytes = 2048;
    const std::string_view piece = source_.text().substr(next_, kPieceBytes);
    if (piece.empty()) return traits_type::eof();
    next_ += piece.size();
    since_event_ += piece.size();
    char* begin = const_cast<char*>(piece.data());  // a get area is never written to
    setg(begin, begin, begin + piece.size());
    return traits_type::to_int_type(*begin);
  }

 private:
  const Source& source_;
  size_t next_ = 0;
  size_t since_event_ = 0;
};

/// A map or list whose end has not been seen.
struct Open {
  Node node;
  YAML::anchor_t anchor = 0;
  bool is_flow = false;
  size_t n_nodes = 1;
  bool has_key = false;
  std::string key;
  YAML::Mark key_mark;
  std::unordered_map<std::string, Origin> keys;
};

struct Anchored {
  std::optional<Node> node;  // none while it is open
  size_t n_nodes = 0;
};

class TreeBuilder : public YAML::EventHandler {
 public:
  TreeBuilder(const Source& source, Feeder& feeder) : source_(source), feeder_(feeder) {}
  Node take_root() { return std::move(root_); }

  void OnDocumentStart(const YAML::Mark& mark) override {
    feeder_.saw_event();
    if (n_documents_++ == 0) return;
    const std::string_view line = source_.line(mark.line);
    if (mark.column == 0 && line.starts_with("---")) {
      refuse(mark, "a second document starts here, expected one document per file");
    }
    refuse(mark, "unexpected text after the end of the value");
  }
  void OnDocumentEnd() override { feeder_.saw_event(); }

  void OnNull(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    feeder_.saw_event();
    check_lost_tag(mark);
    if (wants_key()) refuse(mark, "a key is missing or null; put a key named null in quotes");
    check_colon(mark);
    add(Node(), 1, mark, anchor);
  }

  void OnAlias(const YAML::Mark& mark, YAML::anchor_t anchor) override {
    feeder_.saw_event();
    if (wants_key()) refuse(mark, "an alias is used as a key, expected a name");
    const Anchored& target = anchored_[anchor];
    if (!target.node) refuse(mark, "this alias lies inside the value that it names");
    charge(mark, target.n_nodes);
    add_uncharged(*target.node, target.n_nodes, mark, 0);
  }

  void OnScalar(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                const std::string& value) override {
    feeder_.saw_event();
    check_tab(mark);
    check_tag(mark, tag);
    if (tag == "!") check_quote(mark);
    check_text(mark, value);
    if (wants_key()) return open_key(mark, value);
    if (tag == "!") return add(Node::make_string(value), 1, mark, anchor);  // it was quoted
    Result<Node> node = read_plain_scalar(value);
    if (!node) refuse(mark, node.status().message());
    add(std::move(node).value(), 1, mark, anchor);
  }

  void OnSequenceStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                       YAML::EmitterStyle::value style) override {
    open(Node::make_list(), mark, tag, anchor, style);
  }
  void OnMapStart(const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
                  YAML::EmitterStyle::value style) override {
    open(Node::make_map(), mark, tag, anchor, style);
  }
  void OnSequenceEnd() override { close(); }
  void OnMapEnd() override { close(); }

 private:
  bool wants_key() const {
    return !open_.empty() && open_.back().node.is_map() && !open_.back().has_key;
  }

  [[noreturn]] void refuse(const YAML::Mark& mark, const std::string& what) const {
    const std::string where = path();
    throw Refused{source_.origin(mark).str() + ": " + (where.empty() ? "" : where + ": ") + what};
  }

  // The path of the value that is being read: "sampler.0.temperature".
  std::string path() const {
    std::string out;
    for (const Open& o : open_) {
      if (o.node.is_map() && !o.has_key) break;
      if (!out.empty()) out += '.';
      out += o.node.is_map() ? o.key : std::to_string(o.node.items().size());
    }
    return out;
  }

  void check_tab(const YAML::Mark& mark) const {
    if (!open_.empty() && open_.back().is_flow) return;
    const int32_t tab = source_.tab_in_indentation(mark.line);
    if (tab < 0 || tab >= mark.column) return;
    YAML::Mark at = mark;
    at.column = tab;
    refuse_without_path(at, "a tab in the indentation, expected spaces");
  }

  void check_tag(const YAML::Mark& mark, const std::string& tag) const {
    if (tag == "?" || tag == "!" || tag.empty()) return;
    refuse(mark, "the tag " + quote_for_message(tag) +
                     " is not supported; write the value without it, or in quotes if it is text");
  }

  // yaml-cpp drops the tag of a value that is not there.
  void check_lost_tag(const YAML::Mark& mark) const {
    std::string_view text = source_.line(mark.line);
    text.remove_prefix(std::min(text.size(), static_cast<size_t>(std::max(mark.column, 0))));
    if (text.starts_with("&")) {
      text.remove_prefix(std::min(text.find_first_of(" \t"), text.size()));
      text.remove_prefix(std::min(text.find_first_not_of(" \t"), text.size()));
    }
    if (text.starts_with("!"))
      check_tag(mark, std::string(text.substr(0, text.find_first_of(" \t\r"))));
  }

  // A key at the end of a block that no colon follows: yaml-cpp gives it a null at its own place.
  void check_colon(const YAML::Mark& mark) const {
    if (open_.empty() || open_.back().is_flow || !open_.back().has_key) return;
    if (mark.pos != open_.back().key_mark.pos) return;
    refuse_without_path(mark, "the key " + quote_for_message(open_.back().key) +
                                  " has no colon, or does not belong here; check the indentation");
  }

  // yaml-cpp takes the end of the text for the end of a quoted string.
  void check_quote(const YAML::Mark& mark) const {
    const std::string_view text = source_.text();
    size_t at = static_cast<size_t>(std::max(mark.pos, 0));
    if (at < text.size() && text[at] == '&') {
      at = text.find_first_not_of(" \t\r\n", text.find_first_of(" \t\r\n", at));
    }
    if (at >= text.size() || (text[at] != '"' && text[at] != '\'')) return;
    const char quote = text[at++];
    for (; at < text.size(); ++at) {
      if (quote == '"' && text[at] == '\\') {
        ++at;
      } else if (text[at] == quote) {
        const bool is_doubled = quote == '\'' && text.substr(at + 1).starts_with('\'');
        if (!is_doubled) return;
        ++at;
      }
    }
    refuse(mark, "the closing quote is missing");
  }

  // Escapes can make what the text itself may not hold.
  void check_text(const YAML::Mark& mark, const std::string& value) const {
    if (value.find('\0') != std::string::npos) refuse(mark, "the string holds a NUL character");
    if (find_invalid_utf8(value) != std::string::npos) {
      refuse(mark, "the escapes \\N and \\_ are not supported, write \\u0085 or \\u00a0");
    }
  }

  void charge(const YAML::Mark& mark, size_t n_nodes) {
    n_nodes_ += n_nodes;
    if (n_nodes_ > kYamlMaxNodes) {
      refuse(mark, "the document has more than " + std::to_string(kYamlMaxNodes) +
                       " values once anchors and aliases are expanded");
    }
  }

  void open_key(const YAML::Mark& mark, const std::string& key) {
    Open& map = open_.back();
    if (key == "<<")
      refuse(mark, "the merge key \"<<\" is not supported; use extends, or write the keys");
    if (key.size() > kYamlMaxKeyBytes) {
      refuse(mark, "a key has " + std::to_string(key.size()) + " bytes, the limit is " +
                       std::to_string(kYamlMaxKeyBytes));
    }
    const auto [at, is_new] = map.keys.emplace(key, source_.origin(mark));
    if (!is_new) {
      refuse(mark,
             "the key " + quote_for_message(key) + " is there twice, first at " + at->second.str());
    }
    map.key = key;
    map.key_mark = mark;
    map.has_key = true;
  }

  void open(Node node, const YAML::Mark& mark, const std::string& tag, YAML::anchor_t anchor,
            YAML::EmitterStyle::value style) {
    feeder_.saw_event();
    check_tab(mark);
    check_tag(mark, tag);
    if (open_.size() >= kYamlMaxDepth) {
      refuse_without_path(
          mark, "the document is nested deeper than " + std::to_string(kYamlMaxDepth) + " levels");
    }
    charge(mark, 1);
    Open o;
    o.node = std::move(node);
    o.node.set_origin(source_.origin(mark));
    o.anchor = anchor;
    o.is_flow = style == YAML::EmitterStyle::Flow || (!open_.empty() && open_.back().is_flow);
    if (anchor != 0) anchored_[anchor] = {};
    open_.push_back(std::move(o));
  }

  [[noreturn]] void refuse_without_path(const YAML::Mark& mark, const std::string& what) const {
    throw Refused{source_.origin(mark).str() + ": " + what};
  }

  void close() {
    feeder_.saw_event();
    Open done = std::move(open_.back());
    open_.pop_back();
    const Origin at = done.node.origin();
    YAML::Mark mark;
    mark.line = at.line - 1;
    mark.column = at.column - 1;
    // Not refused at its start: yaml-cpp also takes a bracket that never closes for a key.
    if (wants_key()) refuse(mark, "a key is a list or map, expected a name");
    add_uncharged(std::move(done.node), done.n_nodes, mark, done.anchor);
  }

  void add(Node node, size_t n_nodes, const YAML::Mark& mark, YAML::anchor_t anchor) {
    charge(mark, n_nodes);
    add_uncharged(std::move(node), n_nodes, mark, anchor);
  }

  void add_uncharged(Node node, size_t n_nodes, const YAML::Mark& mark, YAML::anchor_t anchor) {
    const bool in_map = !open_.empty() && open_.back().node.is_map();
    node.set_origin(source_.origin(in_map ? open_.back().key_mark : mark));
    if (anchor != 0) {
      charge(mark, n_nodes);  // the copy kept for aliases
      anchored_[anchor] = {node, n_nodes};
    }
    if (open_.empty()) {
      root_ = std::move(node);
      return;
    }
    Open& parent = open_.back();
    parent.n_nodes += n_nodes;
    if (!in_map) {
      parent.node.items().push_back(std::move(node));
      return;
    }
    parent.node.entries().emplace_back(std::move(parent.key), std::move(node));
    parent.has_key = false;
  }

  const Source& source_;
  Feeder& feeder_;
  Node root_;
  std::vector<Open> open_;
  std::map<YAML::anchor_t, Anchored> anchored_;
  size_t n_nodes_ = 0;
  int n_documents_ = 0;
};

// yaml-cpp's words for the commonest faults, in ours.
std::string explain(const std::string& message) {
  if (message == YAML::ErrorMsg::MAP_VALUE) {
    return "unexpected \":\"; put text that holds \": \" in quotes, and check the indentation";
  }
  if (message == YAML::ErrorMsg::END_OF_MAP) {
    return "this does not continue the map above; check the indentation and the colons";
  }
  if (message == YAML::ErrorMsg::END_OF_SEQ) {
    return "this does not continue the list above; check the indentation and the dashes";
  }
  if (message == YAML::ErrorMsg::END_OF_MAP_FLOW)
    return "a \"{\" is not closed, expected \",\" or \"}\"";
  if (message == YAML::ErrorMsg::END_OF_SEQ_FLOW)
    return "a \"[\" is not closed, expected \",\" or \"]\"";
  if (message == YAML::ErrorMsg::FLOW_END) return "a closing bracket that none opened";
  if (message == YAML::ErrorMsg::EOF_IN_SCALAR) return "the closing quote is missing";
  // Not the constant: from 0.8 on the message ends with the name.
  if (message.starts_with("the referenced anchor")) return "this alias names no anchor above";
  if (message == YAML::ErrorMsg::TAB_IN_INDENTATION) {
    return "a tab in the indentation, expected spaces";
  }
  return "not valid YAML: " + message;
}

std::string describe(const YAML::Exception& e, const Source& source) {
  const int32_t tab = source.tab_in_indentation(e.mark.line);
  if (tab >= 0) {
    YAML::Mark at = e.mark;
    at.column = tab;
    return source.origin(at).str() + ": a tab in the indentation, expected spaces";
  }
  return source.origin(e.mark).str() + ": " + explain(e.msg);
}

Node build_tree(const Source& source) {
  Feeder feeder(source);
  std::istream stream(&feeder);
  YAML::Parser parser(stream);
  TreeBuilder builder(source, feeder);
  if (!parser.HandleNextDocument(builder)) {
    throw Refused{source.name() + ": there is nothing in it, expected a YAML document"};
  }
  parser.HandleNextDocument(builder);  // the builder refuses a second document
  return builder.take_root();
}

}  // namespace

Result<Node> parse_yaml(std::string_view text, std::string source_name) {
  if (text.starts_with("\xEF\xBB\xBF")) text.remove_prefix(3);
  DVT_TRY(check_source_text(text, source_name));
  const Source source(text, std::move(source_name));
  try {
    Node root = build_tree(source);
    root.build_index();
    return root;
  } catch (const Refused& refused) {
    return invalid(refused.message);
  } catch (const YAML::Exception& e) {
    return invalid(describe(e, source));
  } catch (const std::bad_alloc&) {
    return {Code::kNoMemory, source.name() + ": not enough memory to read it"};
  } catch (const std::exception& e) {
    return invalid(source.name() + ": not valid YAML: " + e.what());
  }
}

}  // namespace dovetail::core
