#pragma once

#include <gtest/gtest.h>

#include <string>

#include "mlxcel/core/error.h"

/// The statement throws mlxcel::Error whose message contains `text`.
#define EXPECT_ERROR(statement, text)                                   \
  do {                                                                  \
    std::string expected_text = (text);                                 \
    try {                                                               \
      (void)(statement);                                                \
      ADD_FAILURE() << #statement << " did not throw; expected "        \
                    << expected_text;                                   \
    } catch (const ::mlxcel::Error& error) {                            \
      EXPECT_NE(error.message().find(expected_text), std::string::npos) \
          << "message: " << error.message()                             \
          << "\nexpected to contain: " << expected_text;                \
    }                                                                   \
  } while (false)
