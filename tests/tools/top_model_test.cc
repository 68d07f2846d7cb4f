// What top's frames say: rates of two samples, hits of a minute, and lines that fit.
#include "tools/commands/look/top_model.h"

#include <gtest/gtest.h>

#include "tools/commands/text_form.h"

namespace ember {
namespace {

constexpr int64_t kSecond = 1'000'000;
constexpr int64_t kStart = 1'800'000'000 * kSecond;

TopSample sample_at(int64_t second, uint64_t restored, uint64_t computed) {
  TopSample sample;
  sample.unix_us = kStart + second * kSecond;
  sample.path = "/data/store";
  sample.health = "ok";
  sample.holder_pid = 77;
  sample.live = true;
  sample.disk_bytes = 3u << 20;
  sample.disk_limit_bytes = 4u << 20;
  sample.tiers[1] = {20, 40, restored / 4};
  sample.tiers[2] = {100, 0, restored - restored / 4};
  sample.prompt_tokens = computed;
  sample.read_bytes = restored * 1000;
  sample.written_bytes = 0;
  return sample;
}

std::string text_of(const std::vector<TopLine>& lines) {
  std::string text;
  for (const TopLine& line : lines) text += line.text + '\n';
  return text;
}

TEST(TopModelTest, RatesAreThoseOfTheLatestTwoSamplesOfOneProcess) {
  TopHistory history;
  history.add(sample_at(0, 1000, 500));
  EXPECT_FALSE(history.rates().known);
  history.add(sample_at(2, 1000, 500));
  history.add(sample_at(4, 1800, 700));
  const TopRates rates = history.rates();
  ASSERT_TRUE(rates.known);
  EXPECT_EQ(rates.restored_all, 400);
  EXPECT_EQ(rates.restored[1], 100);
  EXPECT_EQ(rates.restored[2], 300);
  EXPECT_EQ(rates.prompt, 100);
  EXPECT_EQ(rates.read, 400'000);
  EXPECT_EQ(rates.written, 0);
  EXPECT_EQ(*history.hit_share(), 0.8);
  // Another process counts from nothing.
  TopSample other = sample_at(6, 10, 10);
  other.holder_pid = 78;
  history.add(other);
  EXPECT_FALSE(history.rates().known);
  EXPECT_FALSE(history.hit_share().has_value());
}

TEST(TopModelTest, HitsAreThoseOfTheLastMinute) {
  TopHistory history;
  history.add(sample_at(0, 0, 0));
  history.add(sample_at(10, 0, 1000));  // all missed
  for (int second = 12; second <= 80; second += 2) {
    history.add(sample_at(second, static_cast<uint64_t>(second - 10) * 10, 1000));
  }
  EXPECT_EQ(*history.hit_share(), 1.0);
  EXPECT_FALSE(history.hit_share(kStart - 5 * kSecond, kStart).has_value());
}

TEST(TopModelTest, AFrameTellsWhatItKnows) {
  TopHistory history;
  history.add(sample_at(0, 1000, 500));
  history.add(sample_at(2, 1800, 700));
  const std::string text =
      text_of(top_frame(history, {{12, 640, "You are\n\033[31m a helper"}}, TopView{}));
  for (const char* words :
       {"/data/store", "ok; process 77", "20 of 40 blocks", "3.00 MiB of 4.00 MiB",
        "restored 400 tokens/s (host 100, disk 300)", "80.0 % of the last 2 s", "12", "640",
        "You are", "a helper", "0 running, 0 waiting", "every 2 s"}) {
    EXPECT_NE(text.find(words), std::string::npos) << words << "\n" << text;
  }
  EXPECT_EQ(text.find('\033'), std::string::npos);
  TopView asked;
  asked.paused = asked.help = true;
  asked.trouble = "nobody answers";
  const std::string help = text_of(top_frame(history, {}, asked));
  for (const char* words : {"paused", "space", "nobody answers"}) {
    EXPECT_NE(help.find(words), std::string::npos) << words;
  }
}

TEST(TopModelTest, AStoreAtRestHasNoRates) {
  TopSample sample = sample_at(0, 0, 0);
  sample.live = false;
  sample.holder_pid = 0;
  TopHistory history;
  history.add(sample);
  const std::string text = text_of(top_frame(history, {}, TopView{}));
  EXPECT_NE(text.find("nobody holds it"), std::string::npos) << text;
  EXPECT_EQ(text.find("tokens/s"), std::string::npos) << text;
  EXPECT_NE(text.find("3.00 MiB of 4.00 MiB"), std::string::npos) << text;
}

TEST(TopModelTest, LinesFitEverySize) {
  TopHistory history;
  TopSample sample = sample_at(0, 1000, 500);
  sample.path = "/a/long/path/" + std::string(200, 'x');
  sample.warmed_blocks = 5;
  history.add(sample);
  sample.unix_us += 2 * kSecond;
  history.add(sample);
  const std::vector<HotPrefix> hottest(30, {1234567, 7654321, "ein Käse und noch ein 木 mehr"});
  for (const bool unicode : {true, false}) {
    for (const auto& [width, height] :
         {std::pair<size_t, size_t>{40, 12}, {80, 24}, {200, 60}, {1, 1}, {10, 3}}) {
      TopView view{.width = width, .height = height, .unicode = unicode};
      const std::vector<TopLine> lines = top_frame(history, hottest, view);
      EXPECT_EQ(lines.size(), height);
      for (const TopLine& line : lines) {
        EXPECT_LE(columns_of(line.text), width) << line.text;
        if (unicode) continue;
        for (const char c : line.text) EXPECT_GE(c, ' ') << line.text;
      }
    }
  }
}

TEST(TopModelTest, WhatTheCommandsPrintIsRead) {
  const std::string stat = R"({"path":"/s","health":"ok","holder_pid":5,"live":true,
    "disk_bytes":9,"limits":{"disk_bytes":100,"eviction":"auto"},
    "holder":{"loading":false,"disk_limit_bytes":200,"last_scrub_unix_us":3,"pinned_blocks":4,
    "tiers":{"device":{"blocks":1,"capacity_blocks":2,"restored_tokens":3},
    "host":{},"disk":{"restored_tokens":7},"remote":{}},
    "requests":{"running":1,"queued":2,"prompt_tokens":30,"answer_tokens":40}}})";
  const auto sample = parse_top_sample(stat, 11);
  ASSERT_TRUE(sample.ok()) << sample.error().message;
  EXPECT_TRUE(sample->live);
  EXPECT_EQ(sample->restored_tokens(), 10u);
  EXPECT_EQ(sample->disk_limit_bytes, 200u);
  EXPECT_EQ(sample->queued, 2u);
  EXPECT_EQ(sample->answer_tokens, 40u);
  EXPECT_FALSE(parse_top_sample("{}", 0).ok());
  EXPECT_FALSE(parse_top_sample("nothing", 0).ok());
  const auto hottest = parse_hot_prefixes("{\"hits\":3,\"tokens\":64,\"text\":\"a\"}\n\n");
  ASSERT_TRUE(hottest.ok());
  ASSERT_EQ(hottest->size(), 1u);
  EXPECT_EQ((*hottest)[0].text, "a");
  EXPECT_FALSE(parse_hot_prefixes("{}\n").ok());
  TopSample drive;
  add_drive_bytes("rchar: 1\nread_bytes: 22\nwrite_bytes: 33\ncancelled_write_bytes: 44\n", drive);
  EXPECT_EQ(drive.read_bytes, 22u);
  EXPECT_EQ(drive.written_bytes, 33u);
  add_drive_bytes("", drive);
  EXPECT_FALSE(drive.read_bytes.has_value());
}

}  // namespace
}  // namespace ember
