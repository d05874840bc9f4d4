#include "mlxcel/hub/reference.h"

#include <gtest/gtest.h>

#include <filesystem>

#include "tests/unit/hub/support/environment.h"
#include "tests/unit/support/expect_error.h"
#include "tests/unit/support/temporary_directory.h"

namespace mlxcel::hub {
namespace {

TEST(HubReference, OwnerAndName) {
  Reference reference = parse_reference("mlx-community/Qwen3-0.6B_4bit.v2");
  EXPECT_EQ(reference.kind, Reference::Kind::repository);
  EXPECT_EQ(reference.repository.owner, "mlx-community");
  EXPECT_EQ(reference.repository.name, "Qwen3-0.6B_4bit.v2");
  EXPECT_EQ(reference.repository.id(), "mlx-community/Qwen3-0.6B_4bit.v2");
  EXPECT_FALSE(reference.expanded);
}

TEST(HubReference, NameAloneGetsTheOrganisation) {
  Variable none("MLXCEL_DEFAULT_ORG", nullptr);
  EXPECT_EQ(parse_reference("Qwen3").repository.id(), "mlx-community/Qwen3");
  EXPECT_TRUE(parse_reference("Qwen3").expanded);
  for (const char* blank : {"", " ", "\t\n"}) {
    Variable set("MLXCEL_DEFAULT_ORG", blank);
    EXPECT_EQ(parse_reference("n").repository.id(), "mlx-community/n");
  }
  Variable set("MLXCEL_DEFAULT_ORG", "my.org");
  EXPECT_EQ(parse_reference("n").repository.id(), "my.org/n");
  for (const char* bad : {"a/b", "..", "a b", "\xc3\xa9"}) {
    Variable wrong("MLXCEL_DEFAULT_ORG", bad);
    EXPECT_ERROR(parse_reference("n"), "[environment] MLXCEL_DEFAULT_ORG");
  }
}

TEST(HubReference, ExistingPathsWin) {
  TemporaryDirectory dir;
  std::filesystem::create_directories(dir / "o/n.gguf");
  std::filesystem::create_directories(dir / "https:/x");
  std::string file = dir.write("o/config.json", "{}");
  EXPECT_EQ(parse_reference(dir / "o").path, dir / "o");
  EXPECT_EQ(parse_reference(file).path, file);
  // A directory is always allowed, whatever its name.
  EXPECT_EQ(parse_reference(dir / "o/n.gguf").path, dir / "o/n.gguf");
  EXPECT_EQ(parse_reference(dir / "o/n.gguf").kind, Reference::Kind::path);
}

TEST(HubReference, NoNames) {
  for (const std::string& text : std::vector<std::string>{
           "",
           "/",
           "a/",
           "/a",
           "a//b",
           "a/b/c",
           "../a",
           "a/..",
           "./a",
           "a/.",
           ".",  // exists: see below
           "a b",
           "a\\b",
           "a:b",
           "\xc3\xa9/x",
           "a\nb",
           std::string("a\0b", 3),
           std::string(129, 'a'),
       }) {
    if (text == "/" || text == ".") {
      continue;
    }
    EXPECT_ERROR(parse_reference(text), "OWNER/NAME");
    EXPECT_ERROR(parse_reference(text), "mlx-community/NAME");
  }
}

TEST(HubReference, Gguf) {
  EXPECT_ERROR(parse_reference("dir/model.gguf"), "mlxcel convert");
  EXPECT_ERROR(parse_reference("model.GGUF"), "mlxcel convert");
  EXPECT_ERROR(parse_reference("m-00001-of-00003.gguf"), "split GGUF");
  EXPECT_ERROR(parse_reference("m-0001-of-00003.gguf"), "mlxcel convert");
  EXPECT_ERROR(parse_reference("-of-00003.gguf"), "mlxcel convert");
  EXPECT_EQ(parse_reference("o/model-gguf").kind, Reference::Kind::repository);
  TemporaryDirectory dir;
  EXPECT_ERROR(parse_reference(dir.write("m.gguf", "GGUF")), "convert");
}

TEST(HubReference, UrlsOfTheHubProposeTheRepository) {
  for (const char* url :
       {"https://huggingface.co/o/n",
        "https://www.huggingface.co/o/n/",
        "http://hf.co/o/n/tree/main/sub",
        "https://huggingface.co/o/n/resolve/main/config.json?download=true",
        "https://huggingface.co/o/n?x#y",
        "https://huggingface.co//o//n",
        "https://huggingface.co/api/models/o/n",
        "https://huggingface.co:443/o/n",
        "HTTPS://HUGGINGFACE.CO/o/n",
        "https://me:secret@huggingface.co/o/n",
        "hf.co/o/n",
        "hf://o/n"}) {
    EXPECT_ERROR(parse_reference(url), "give the repository: o/n");
  }
  for (const char* url :
       {"https://huggingface.co",
        "https://huggingface.co/o",
        "https://huggingface.co/datasets/o/n",
        "https://huggingface.co/spaces/o/n",
        "https://huggingface.co/o/..",
        "https://huggingface.co.evil.org/o/n",
        "https://huggingface.co@evil.org/o/n",
        "file:///etc/passwd",
        "://",
        "://@/?#"}) {
    EXPECT_ERROR(parse_reference(url), "owner/name");
  }
}

TEST(HubReference, SecretsOfUrlsAreNotRepeated) {
  for (const std::string& url :
       {std::string("https://user:secret@example.com/x"),
        std::string("https://secret@example.com/x"),
        std::string("https://a@b:secret@example.com/x.gguf"),
        std::string("https://example.com/x?token=secret"),
        std::string("https://example.com/x#secret"),
        std::string("https://secret@huggingface.co/o/n")}) {
    try {
      parse_reference(url);
      ADD_FAILURE() << url;
    } catch (const Error& error) {
      EXPECT_EQ(error.message().find("secret"), std::string::npos)
          << error.message();
      EXPECT_EQ(error.code(), ErrorCode::unsupported);
    }
  }
  EXPECT_ERROR(
      parse_reference("https://me@example.com/x"), "https://***@example.com/x"
  );
}

TEST(HubReference, Repositories) {
  EXPECT_EQ(parse_repository("a/b").repository.id(), "a/b");
  // Also where a path of that name exists.
  EXPECT_EQ(parse_repository("tests").kind, Reference::Kind::repository);
  EXPECT_ERROR(parse_repository("a/b/c"), "OWNER/NAME");
  EXPECT_ERROR(parse_repository("../b"), "OWNER/NAME");
  EXPECT_ERROR(parse_repository("https://hf.co/o/n"), "repository: o/n");
}

TEST(HubReference, Revisions) {
  for (const char* fine :
       {"main", "refs/pr/1", "v1.0", "a_b-c", "feature/x+y", "0123abcd"}) {
    check_revision(fine);
  }
  for (const std::string& bad :
       {std::string(""),
        std::string(".."),
        std::string("../x"),
        std::string("a/../b"),
        std::string("/a"),
        std::string("a/"),
        std::string("a//b"),
        std::string("-a"),
        std::string("a b"),
        std::string("a\\b"),
        std::string("a\n"),
        std::string("a\0b", 3),
        std::string(256, 'a')}) {
    EXPECT_ERROR(check_revision(bad), "--revision");
  }
}

}  // namespace
}  // namespace mlxcel::hub
