#include "operator/client/rest/kubeconfig.h"

#include <algorithm>
#include <cctype>
#include <fstream>
#include <sstream>

#include "operator/api/json_input.h"
#include "operator/client/rest/base64.h"

namespace coxswain {

namespace {

// Reads the fields of one mapping; the first error is kept, so that a caller asks once at the end.
class Fields {
 public:
  Fields(YAML::Node node, std::string where, std::filesystem::path folder)
      : node_(node.IsDefined() ? std::move(node) : YAML::Node()),
        where_(std::move(where)),
        folder_(std::move(folder)) {
    if (!node_.IsNull() && !node_.IsMap()) fail("", "must be a mapping of fields");
  }

  bool has(const std::string& field) const { return present(child(field)); }

  std::string text(const std::string& field) {
    const YAML::Node value = child(field);
    if (!present(value)) return "";
    if (value.IsScalar()) return value.Scalar();
    fail(field, "must be a text");
    return "";
  }

  bool flag(const std::string& field) {
    const std::string value = text(field);
    if (value.empty() || value == "false") return false;
    if (value != "true") fail(field, "must be true or false");
    return value == "true";
  }

  std::vector<std::string> texts(const std::string& field) {
    std::vector<std::string> result;
    for (const YAML::Node& item : items(field)) {
      if (item.IsScalar()) {
        result.push_back(item.Scalar());
      } else {
        fail(field, "must be a list of texts");
      }
    }
    return result;
  }

  std::vector<YAML::Node> items(const std::string& field) {
    const YAML::Node value = child(field);
    if (!present(value)) return {};
    if (value.IsSequence()) return {value.begin(), value.end()};
    fail(field, "must be a list");
    return {};
  }

  std::filesystem::path file(const std::string& field) {
    const std::string value = text(field);
    return value.empty() ? std::filesystem::path() : (folder_ / value).lexically_normal();
  }

  PemSource pem(const std::string& field) {
    PemSource source;
    if (const std::string data = text(field + "-data"); !data.empty()) {
      const auto bytes = decode_base64(data);
      if (!bytes || bytes->empty()) {
        fail(field + "-data", "must be PEM text in Base64");
      } else {
        source.data = *bytes;
      }
    }
    source.file = file(field);
    return source;
  }

  YAML::Node child(const std::string& field) const {
    return node_.IsMap() ? node_[field] : YAML::Node(YAML::NodeType::Undefined);
  }

  const std::string& where() const { return where_; }
  const std::filesystem::path& folder() const { return folder_; }

  void fail(const std::string& field, const std::string& rule) {
    if (error_.empty()) error_ = where_ + (field.empty() ? "" : "." + field) + ": " + rule + ".";
  }
  // A sentence that already says where.
  void adopt(const std::string& sentence) {
    if (error_.empty()) error_ = sentence;
  }
  bool failed() const { return !error_.empty(); }
  tl::unexpected<Failure> error() const { return bad_input(error_); }

 private:
  static bool present(const YAML::Node& node) { return node.IsDefined() && !node.IsNull(); }

  const YAML::Node node_;
  const std::string where_;
  const std::filesystem::path folder_;
  std::string error_;
};

std::string joined(const std::vector<std::filesystem::path>& files) {
  std::string text;
  for (const auto& file : files) text += (text.empty() ? "" : ", ") + file.string();
  return text;
}

std::string names(const std::map<std::string, Kubeconfig::Entry>& entries) {
  std::string text;
  for (const auto& [name, _] : entries) text += (text.empty() ? "" : ", ") + name;
  return text.empty() ? "none" : text;
}

// Lists of {name: …, <kind>: {…}}; within one file, too, the first of a name wins.
std::map<std::string, Kubeconfig::Entry> named_entries(Fields& root, const std::string& list,
                                                       const std::string& kind,
                                                       const std::filesystem::path& file) {
  std::map<std::string, Kubeconfig::Entry> entries;
  for (const YAML::Node& item : root.items(list)) {
    Fields fields(item, root.where() + ": " + list, root.folder());
    const std::string name = fields.text("name");
    if (fields.failed() || name.empty()) {
      root.fail(list, "must hold entries with a name and a " + kind);
      continue;
    }
    entries.try_emplace(name, Kubeconfig::Entry{fields.child(kind), file});
  }
  return entries;
}

void read_cluster(Fields& fields, ClusterAccess& access) {
  access.ca = fields.pem("certificate-authority");
  access.skip_verify = fields.flag("insecure-skip-tls-verify");
  access.tls_server_name = fields.text("tls-server-name");
  access.proxy_url = fields.text("proxy-url");
  access.compression = !fields.flag("disable-compression");
  if (access.skip_verify && !access.ca.empty()) {
    fields.fail("insecure-skip-tls-verify", "can't be set together with certificate-authority; remove one");
  }
  const std::string server = fields.text("server");
  if (server.empty()) return fields.fail("server", "is missing; write https://HOST:PORT");
  auto url = parse_url(server, fields.where() + ".server");
  if (!url) return fields.adopt(url.error().message);
  access.server = std::move(*url);
}

ExecPlugin read_exec(Fields& fields) {
  ExecPlugin plugin;
  plugin.api_version = fields.text("apiVersion");
  if (plugin.api_version != "client.authentication.k8s.io/v1" &&
      plugin.api_version != "client.authentication.k8s.io/v1beta1") {
    fields.fail("apiVersion",
                "must be client.authentication.k8s.io/v1 or client.authentication.k8s.io/v1beta1");
  }
  plugin.command = fields.text("command");
  if (plugin.command.empty()) fields.fail("command", "is missing");
  if (plugin.command.find('/') != std::string::npos) plugin.command = fields.file("command").string();
  plugin.args = fields.texts("args");
  for (const YAML::Node& item : fields.items("env")) {
    Fields variable(item, fields.where() + ".env", fields.folder());
    plugin.env.emplace_back(variable.text("name"), variable.text("value"));
    if (variable.failed() || plugin.env.back().first.empty()) {
      fields.fail("env", "must hold entries with a name and a value");
    }
  }
  plugin.install_hint = fields.text("installHint");
  plugin.provide_cluster_info = fields.flag("provideClusterInfo");
  if (fields.text("interactiveMode") == "Always") {
    fields.fail("interactiveMode",
                "is Always, but there is no one to ask here; use a plugin that needs no terminal");
  }
  return plugin;
}

void read_user(Fields& fields, ClusterAccess& access) {
  access.client_certificate = fields.pem("client-certificate");
  access.client_key = fields.pem("client-key");
  if (access.client_certificate.empty() != access.client_key.empty()) {
    fields.fail(access.client_key.empty() ? "client-key" : "client-certificate",
                "is missing; certificate and key go together");
  }
  access.token = fields.text("token");
  access.token_file = fields.file("tokenFile");
  access.username = fields.text("username");
  access.password = fields.text("password");
  access.impersonate = {fields.text("as"), fields.text("as-uid"), fields.texts("as-groups")};
  if (access.impersonate.user.empty() &&
      (!access.impersonate.uid.empty() || !access.impersonate.groups.empty())) {
    fields.fail("as", "is missing, though as-uid or as-groups is set");
  }
  // The HTTP library joins headers of one name by commas, which would name another group.
  if (access.impersonate.groups.size() > 1) fields.fail("as-groups", "may hold only one group here");
  for (const std::string unsupported : {"auth-provider", "as-user-extra"}) {
    if (fields.has(unsupported)) {
      fields.fail(unsupported, "is not supported; use an exec plugin, a token or a client certificate");
    }
  }
  if (!fields.has("exec")) return;
  Fields exec(fields.child("exec"), fields.where() + ".exec", fields.folder());
  access.exec = read_exec(exec);
  if (exec.failed()) fields.adopt(exec.error().value().message);
}

Result<std::pair<std::string, Kubeconfig::Entry>> chosen_context(const Kubeconfig& config,
                                                                 const std::string& context) {
  const std::string files = joined(config.files);
  const std::string name = context.empty() ? config.current_context : context;
  if (name.empty()) {
    return bad_input(files + ": current-context is not set; set it, or choose one by --context: " +
                     names(config.contexts) + ".");
  }
  const auto chosen = config.contexts.find(name);
  if (chosen == config.contexts.end()) {
    return bad_input(files + ": there is no context \"" + name + "\"; there are: " + names(config.contexts) +
                     ".");
  }
  return *chosen;
}

}  // namespace

Result<Kubeconfig> parse_kubeconfig(const std::string& text, const std::filesystem::path& file) {
  if (const auto at = not_utf8_at(text)) {
    const auto line = std::count(text.begin(), text.begin() + static_cast<std::ptrdiff_t>(*at), '\n') + 1;
    return bad_input(file.string() + ": is not UTF-8 text at line " + std::to_string(line) +
                     "; save it in that encoding.");
  }
  try {
    const YAML::Node document = YAML::Load(text);
    Fields root(document, file.string(), file.parent_path());
    Kubeconfig config;
    config.files = {file};
    config.current_context = root.text("current-context");
    config.clusters = named_entries(root, "clusters", "cluster", file);
    config.users = named_entries(root, "users", "user", file);
    config.contexts = named_entries(root, "contexts", "context", file);
    if (root.failed()) return root.error();
    return config;
  } catch (const YAML::Exception& error) {
    // Its message may quote the text; position and kind are enough, and hold no secret.
    return bad_input(file.string() + ": is no YAML at line " + std::to_string(error.mark.line + 1) +
                     "; correct it there.");
  }
}

void merge_kubeconfig(Kubeconfig& into, Kubeconfig next) {
  into.files.insert(into.files.end(), next.files.begin(), next.files.end());
  if (into.current_context.empty()) into.current_context = next.current_context;
  into.clusters.merge(next.clusters);
  into.users.merge(next.users);
  into.contexts.merge(next.contexts);
}

Result<Kubeconfig> load_kubeconfig(const std::vector<std::filesystem::path>& files, bool must_exist) {
  Kubeconfig config;
  for (const auto& file : files) {
    std::error_code ignored;
    if (!must_exist && !std::filesystem::exists(file, ignored)) continue;
    std::ifstream in(file, std::ios::binary);
    std::ostringstream text;
    text << in.rdbuf();
    if (!in.is_open() || std::filesystem::is_directory(file, ignored)) {
      return bad_input("kubeconfig " + file.string() +
                       " can't be read; check that it exists and who may read it.");
    }
    auto next = parse_kubeconfig(text.str(), std::filesystem::absolute(file));
    if (!next) return next;
    merge_kubeconfig(config, std::move(*next));
  }
  if (config.files.empty()) {
    return bad_input("KUBECONFIG: none of the files it names exists: " + joined(files) + ".");
  }
  return config;
}

Result<ClusterAccess> select_context(const Kubeconfig& config, const std::string& context) {
  auto chosen = chosen_context(config, context);
  if (!chosen) return tl::unexpected(chosen.error());
  const auto& [name, entry] = *chosen;
  const auto fields_of = [&name = name](const Kubeconfig::Entry& of, const std::string& kind,
                                        const std::string& entry_name) {
    return Fields(of.value, of.file.string() + ", context " + name + ": " + kind + "[" + entry_name + "]",
                  of.file.parent_path());
  };
  Fields fields = fields_of(entry, "contexts", name);
  const std::string cluster_name = fields.text("cluster");
  const std::string user_name = fields.text("user");
  ClusterAccess access;
  access.source = entry.file.string() + ", context " + name;
  access.default_namespace = fields.text("namespace");
  if (access.default_namespace.empty()) access.default_namespace = "default";
  const auto cluster = config.clusters.find(cluster_name);
  const auto user = config.users.find(user_name);
  if (cluster == config.clusters.end()) {
    fields.fail("cluster",
                "there is no cluster \"" + cluster_name + "\"; there are: " + names(config.clusters));
  }
  if (!user_name.empty() && user == config.users.end()) {
    fields.fail("user", "there is no user \"" + user_name + "\"; there are: " + names(config.users));
  }
  if (fields.failed()) return fields.error();
  Fields cluster_fields = fields_of(cluster->second, "clusters", cluster_name);
  read_cluster(cluster_fields, access);
  if (cluster_fields.failed()) return cluster_fields.error();
  if (user_name.empty()) return access;
  Fields user_fields = fields_of(user->second, "users", user_name);
  read_user(user_fields, access);
  if (user_fields.failed()) return user_fields.error();
  return access;
}

}  // namespace coxswain
