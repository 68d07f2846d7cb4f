// Frames of the holder's socket: what goes in comes out, and nothing hostile gets through.
#include "service/holder/holder_frames.h"

#include <gtest/gtest.h>

#include "base/bytes.h"
#include "base/prng.h"

namespace ember {
namespace {

HolderRequest some_request() {
  HolderRequest request;
  request.arguments = {"ls", "--store", std::string("a\0b", 3), "", "--json"};
  request.folder = "/home/ada";
  request.store = "store";
  request.width = 132;
  request.colour = true;
  request.interactive = true;
  return request;
}

TEST(HolderFramesTest, RequestComesBackAsItWas) {
  const HolderRequest request = some_request();
  const Result<std::string> body = encode_request(request);
  ASSERT_TRUE(body.ok());
  const Result<HolderRequest> back = decode_request(*body);
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->arguments, request.arguments);
  EXPECT_EQ(back->folder, request.folder);
  EXPECT_EQ(back->store, request.store);
  EXPECT_EQ(back->width, request.width);
  EXPECT_EQ(back->colour, request.colour);
  EXPECT_EQ(back->progress, request.progress);
  EXPECT_EQ(back->interactive, request.interactive);
}

TEST(HolderFramesTest, HeadComesBackAndTornOnesAreRefused) {
  const std::string frame = encode_frame(FrameType::kErr, "oh");
  ASSERT_EQ(frame.size(), kFrameHeadBytes + 2);
  const Result<FrameHead> head = decode_frame_head(frame.substr(0, kFrameHeadBytes));
  ASSERT_TRUE(head.ok());
  EXPECT_EQ(head->type, FrameType::kErr);
  EXPECT_EQ(head->body_bytes, 2u);
  for (size_t bytes = 0; bytes < kFrameHeadBytes; ++bytes) {
    EXPECT_FALSE(decode_frame_head(frame.substr(0, bytes)).ok());
  }
}

TEST(HolderFramesTest, LengthsAndTypesThatNobodySendsAreRefused) {
  std::string head = encode_frame(FrameType::kOut, {});
  head[0] = 0;
  EXPECT_FALSE(decode_frame_head(head).ok());
  head[0] = 9;
  EXPECT_FALSE(decode_frame_head(head).ok());
  head[0] = 3;
  head[1] = 1;
  EXPECT_FALSE(decode_frame_head(head).ok());
  std::string longest(4, '\0');
  longest[0] = 3;
  append_value(longest, static_cast<uint32_t>(kMostFrameBytes));
  EXPECT_TRUE(decode_frame_head(longest).ok());
  std::string too_long(4, '\0');
  too_long[0] = 3;
  append_value(too_long, static_cast<uint32_t>(kMostFrameBytes + 1));
  const Result<FrameHead> refused = decode_frame_head(too_long);
  ASSERT_FALSE(refused.ok());
  EXPECT_NE(refused.error().message.find("65537"), std::string::npos);
}

TEST(HolderFramesTest, GreetingOfAnotherVersionIsReadAllTheSame) {
  const HolderGreeting greeting{7, true, 4711, "9.8.7"};
  const Result<HolderGreeting> back = decode_greeting(encode_greeting(greeting) + "and more");
  ASSERT_TRUE(back.ok());
  EXPECT_EQ(back->protocol, 7);
  EXPECT_TRUE(back->busy);
  EXPECT_EQ(back->pid, 4711u);
  EXPECT_EQ(back->program, "9.8.7");
  EXPECT_FALSE(decode_greeting("HTTP/1.1 400 Bad Request").ok());
}

TEST(HolderFramesTest, ExitCodesComeBack) {
  for (const int code : {0, 1, 2, 255, -1}) EXPECT_EQ(*decode_exit(encode_exit(code)), code);
  EXPECT_FALSE(decode_exit("abc").ok());
  EXPECT_FALSE(decode_exit("abcde").ok());
}

TEST(HolderFramesTest, CommandLineThatDoesNotFitIsRefusedWithItsLength) {
  HolderRequest request;
  request.arguments = {"chat", std::string(kMostFrameBytes, 'x')};
  const Result<std::string> body = encode_request(request);
  ASSERT_FALSE(body.ok());
  EXPECT_EQ(body.error().code, ErrorCode::kCapacity);
  EXPECT_NE(body.error().message.find("65536"), std::string::npos);
}

TEST(HolderFramesTest, EveryTornOrLongerRequestIsRefused) {
  const std::string body = *encode_request(some_request());
  for (size_t bytes = 0; bytes < body.size(); ++bytes) {
    EXPECT_FALSE(decode_request(body.substr(0, bytes)).ok()) << bytes;
  }
  EXPECT_FALSE(decode_request(body + "x").ok());
}

// Changed at random places, a request is refused, or is another one that fits a frame.
TEST(HolderFramesTest, ChangedBytesNeverReadPastTheBody) {
  const std::string body = *encode_request(some_request());
  const std::string greeting = encode_greeting({1, false, 1, "0.1.0"});
  for (uint64_t seed = 0; seed < 20'000; ++seed) {
    std::string changed = body;
    std::string hello = greeting;
    for (uint64_t i = 0; i <= seed % 4; ++i) {
      const uint64_t draw = counter_random(seed, i, 0);
      changed[draw % changed.size()] = static_cast<char>(draw >> 32);
      hello[draw % hello.size()] = static_cast<char>(draw >> 32);
    }
    const Result<HolderRequest> decoded = decode_request(changed);
    if (decoded.ok()) {
      EXPECT_TRUE(encode_request(*decoded).ok());
    }
    const Result<HolderGreeting> other = decode_greeting(hello);
    if (other.ok()) {
      EXPECT_LE(other->program.size(), hello.size());
    }
  }
}

}  // namespace
}  // namespace ember
