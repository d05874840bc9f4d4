#include "mlxcel/engine/stop_strings.h"

#include <gtest/gtest.h>

#include "tests/unit/support/expect_error.h"

namespace mlxcel {
namespace {

TEST(StopStrings, EmitsAtOnceWithoutStops) {
  StopStrings stops({});
  EXPECT_EQ(stops.push("abc"), "abc");
  EXPECT_EQ(stops.flush(), "");
}

TEST(StopStrings, HoldsBackWhatCouldBecomeAStop) {
  StopStrings stops({"STOP"});
  EXPECT_EQ(stops.push("a ST"), "a ");
  EXPECT_EQ(stops.push("O"), "");
  EXPECT_EQ(stops.push("x"), "STOx");
  EXPECT_EQ(stops.push("ST"), "");
  EXPECT_EQ(stops.flush(), "ST");
  EXPECT_FALSE(stops.stopped());
}

TEST(StopStrings, EndsAtTheEarliestMatch) {
  StopStrings stops({"zz", "b"});
  EXPECT_EQ(stops.push("xab zz"), "xa");
  EXPECT_TRUE(stops.stopped());
  EXPECT_EQ(stops.push("more"), "");
  EXPECT_EQ(stops.flush(), "");
}

TEST(StopStrings, MatchesAcrossPieces) {
  StopStrings stops({"\n\nUser:"});
  std::string out;
  for (const char* piece : {"Hi", "\n", "\nUs", "er", ":", " x"}) {
    out += stops.push(piece);
  }
  EXPECT_EQ(out, "Hi");
  EXPECT_TRUE(stops.stopped());
}

TEST(StopStrings, RefusesEmptyAndTooMany) {
  EXPECT_ERROR(StopStrings({""}), "empty stop string");
  EXPECT_ERROR(
      StopStrings(std::vector<std::string>(10000, "x")), "at most 256"
  );
}

}  // namespace
}  // namespace mlxcel
