// The holder's socket, both ends of it: commands run, and nobody can hold up the others.
#include "service/holder/holder_server.h"

#include <fcntl.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <atomic>
#include <condition_variable>
#include <cstring>
#include <filesystem>
#include <mutex>
#include <thread>
#include <vector>

#include "service/holder/holder_client.h"
#include "service/holder/holder_socket.h"
#include "tests/support/temp_folder.h"

namespace ember {
namespace {

// A gate that a handler waits at until the test opens it.
class Gate {
 public:
  void open() {
    const std::lock_guard<std::mutex> lock(mutex_);
    open_ = true;
    changed_.notify_all();
  }
  void wait() {
    std::unique_lock<std::mutex> lock(mutex_);
    changed_.wait(lock, [this] { return open_; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  bool open_ = false;
};

// A client whose streams are files.
struct Ran {
  Result<int> code = Error{};
  std::string out;
  std::string err;
};

Ran run_command(const std::string& store, const TempFolder& folder,
                std::vector<std::string> arguments, const std::string& input = "") {
  static std::atomic<int> count{0};
  const std::string name = std::to_string(count++);
  const std::string out = folder.write("out" + name, "");
  const std::string err = folder.write("err" + name, "");
  const std::string in = folder.write("in" + name, input);
  const Descriptor in_fd(::open(in.c_str(), O_RDONLY));
  const Descriptor out_fd(::open(out.c_str(), O_WRONLY));
  const Descriptor err_fd(::open(err.c_str(), O_WRONLY));
  Ran ran;
  Result<std::unique_ptr<HolderClient>> client = HolderClient::connect(store);
  if (!client.ok() || *client == nullptr) {
    ran.code = client.ok() ? Error{ErrorCode::kIo, "nobody answers"} : client.error();
    return ran;
  }
  HolderRequest request;
  request.arguments = std::move(arguments);
  request.store = store;
  ran.code = (*client)->run(request, {in_fd.fd(), out_fd.fd(), err_fd.fd()});
  ran.out = read_file(out);
  ran.err = read_file(err);
  return ran;
}

// Says its words, then each line of its input in capitals, then how many there were.
int shout(const HolderRequest& request, HolderStreams& streams) {
  for (const std::string& word : request.arguments) streams.out() << word << ' ';
  streams.out() << '\n';
  if (request.arguments.front() == "quiet") return 0;
  int lines = 0;
  for (std::string line; std::getline(streams.in(), line); ++lines) {
    for (char& c : line) c = static_cast<char>(std::toupper(c));
    streams.out() << line << '\n';
  }
  streams.err() << lines << " lines\n";
  return lines;
}

std::unique_ptr<HolderServer> start(const std::string& store, HolderHandler handler,
                                    size_t most = 8, int64_t patience_us = 10'000'000) {
  Result<std::unique_ptr<HolderServer>> server =
      HolderServer::start({store, "0.1.0", most, patience_us, patience_us}, std::move(handler));
  EXPECT_TRUE(server.ok()) << server.error().message;
  return server.ok() ? std::move(server).value() : nullptr;
}

void wait_until(const std::function<bool()>& holds) {
  while (!holds()) std::this_thread::sleep_for(std::chrono::milliseconds(1));
}

Descriptor raw_connection(const std::string& store) {
  Descriptor socket = std::move(make_unix_socket()).value();
  EXPECT_EQ(SocketAddress::in_folder(store)->connect(socket), 0);
  return socket;
}

constexpr FramePatience kPatience{10'000'000, 10'000'000};

TEST(HolderServerTest, CommandRunsThereWithTheStreamsOfTheClient) {
  const TempFolder folder;
  const auto server = start(folder.path(), shout);
  const Ran ran = run_command(folder.path(), folder, {"say", "this"}, "one\ntwo\nlast");
  ASSERT_TRUE(ran.code.ok()) << ran.code.error().message;
  EXPECT_EQ(*ran.code, 3);
  EXPECT_EQ(ran.out, "say this \nONE\nTWO\nLAST\n");
  EXPECT_EQ(ran.err, "3 lines\n");
  EXPECT_EQ(server->stats().served, 1u);
}

TEST(HolderServerTest, StreamsOfAnyLengthPassInBothDirections) {
  const TempFolder folder;
  const auto server = start(folder.path(), shout);
  const std::string line(99, 'x');
  std::string input;
  std::string shouted = "many \n";
  for (int i = 0; i < 5000; ++i) {
    input += line + "\n";
    shouted += std::string(99, 'X') + "\n";
  }
  const Ran ran = run_command(folder.path(), folder, {"many"}, input);
  ASSERT_TRUE(ran.code.ok());
  EXPECT_EQ(*ran.code, 5000);
  EXPECT_EQ(ran.out, shouted);
}

TEST(HolderServerTest, InputThatNoCommandReadsStaysWithItsOwner) {
  const TempFolder folder;
  const auto server = start(folder.path(), shout);
  const std::string in = folder.write("in", "mine\n");
  const Descriptor in_fd(::open(in.c_str(), O_RDONLY));
  const Descriptor null(::open("/dev/null", O_WRONLY));
  auto client = HolderClient::connect(folder.path());
  ASSERT_TRUE(client.ok() && *client != nullptr);
  HolderRequest request;
  request.arguments = {"quiet"};
  ASSERT_EQ(*(*client)->run(request, {in_fd.fd(), null.fd(), null.fd()}), 0);
  EXPECT_EQ(::lseek(in_fd.fd(), 0, SEEK_CUR), 0);
}

TEST(HolderServerTest, SocketIsForItsOwnerAloneAndGoesWithTheServer) {
  const TempFolder folder;
  const std::string path = folder / kHolderSocketName;
  auto server = start(folder.path(), shout);
  struct stat found {};
  ASSERT_EQ(::lstat(path.c_str(), &found), 0);
  EXPECT_EQ(found.st_mode & 07777, 0600u);
  server.reset();
  EXPECT_EQ(::lstat(path.c_str(), &found), -1);
  const auto client = HolderClient::connect(folder.path());
  ASSERT_TRUE(client.ok());
  EXPECT_EQ(*client, nullptr);
}

TEST(HolderServerTest, SocketOfADeadHolderIsReplacedAndALivingOneIsNot) {
  const TempFolder folder;
  {
    const Descriptor dead = std::move(make_unix_socket()).value();
    ASSERT_EQ(SocketAddress::in_folder(folder.path())->bind(dead), 0);
  }
  const auto nobody = HolderClient::connect(folder.path());
  ASSERT_TRUE(nobody.ok());
  EXPECT_EQ(*nobody, nullptr);
  const auto server = start(folder.path(), shout);
  ASSERT_NE(server, nullptr);
  const auto second = HolderServer::start({folder.path(), "0.1.0"}, shout);
  ASSERT_FALSE(second.ok());
  EXPECT_EQ(second.error().code, ErrorCode::kBusy);
  EXPECT_TRUE(run_command(folder.path(), folder, {"quiet"}).code.ok());
}

TEST(HolderServerTest, FileThatIsNoSocketIsLeftAlone) {
  const TempFolder folder;
  folder.write(kHolderSocketName, "precious");
  const auto server = HolderServer::start({folder.path(), "0.1.0"}, shout);
  ASSERT_FALSE(server.ok());
  EXPECT_EQ(server.error().code, ErrorCode::kIo);
  EXPECT_EQ(read_file(folder / kHolderSocketName), "precious");
}

TEST(HolderServerTest, FolderMayHaveALongerPathThanASocketMay) {
  const TempFolder folder;
  const std::string deep = folder / std::string(100, 'd') + "/" + std::string(100, 'e');
  std::filesystem::create_directories(deep);
  auto server = start(deep, shout);
  ASSERT_NE(server, nullptr);
  EXPECT_TRUE(run_command(deep, folder, {"quiet"}).code.ok());
  server.reset();
  EXPECT_FALSE(std::filesystem::exists(deep + "/" + kHolderSocketName));
}

TEST(HolderServerTest, OneTooManyIsToldThatItIsBusy) {
  const TempFolder folder;
  Gate gate;
  const auto server = start(
      folder.path(),
      [&gate](const HolderRequest&, HolderStreams&) {
        gate.wait();
        return 0;
      },
      2);
  std::vector<std::thread> clients;
  for (int i = 0; i < 2; ++i) {
    clients.emplace_back([&] {
      EXPECT_TRUE(run_command(folder.path(), folder, {"wait"}).code.ok());
    });
  }
  wait_until([&] { return server->stats().served == 2; });
  const Ran third = run_command(folder.path(), folder, {"wait"});
  ASSERT_FALSE(third.code.ok());
  EXPECT_EQ(third.code.error().code, ErrorCode::kBusy);
  gate.open();
  for (std::thread& client : clients) client.join();
  wait_until([&] { return server->stats().open == 0; });
  EXPECT_TRUE(run_command(folder.path(), folder, {"wait"}).code.ok());
  EXPECT_EQ(server->stats().busy, 1u);
}

TEST(HolderServerTest, HandlerLearnsThatItsClientIsGone) {
  const TempFolder folder;
  std::atomic<bool> wrote{true};
  Gate told;
  const auto server = start(folder.path(), [&](const HolderRequest&, HolderStreams& streams) {
    wait_until([&] { return streams.cancelled(); });
    wrote = static_cast<bool>(streams.out() << "to nobody" << std::flush);
    std::string line;
    EXPECT_FALSE(std::getline(streams.in(), line));
    told.open();
    return 0;
  });
  {
    const Descriptor socket = raw_connection(folder.path());
    ASSERT_TRUE(read_frame(socket, kPatience).ok());
    HolderRequest request;
    request.arguments = {"x"};
    ASSERT_TRUE(
        write_frame(socket, FrameType::kRequest, *encode_request(request), 1'000'000).ok());
  }
  told.wait();
  EXPECT_FALSE(wrote);
}

TEST(HolderServerTest, HandlerIsEndedAndItsClientToldWhenTheHolderEnds) {
  const TempFolder folder;
  auto server = start(folder.path(), [](const HolderRequest&, HolderStreams& streams) {
    wait_until([&] { return streams.cancelled(); });
    return 0;
  });
  Ran ran;
  std::thread client([&] { ran = run_command(folder.path(), folder, {"wait"}); });
  wait_until([&] { return server->stats().served == 1; });
  server.reset();
  client.join();
  ASSERT_FALSE(ran.code.ok());
  EXPECT_EQ(ran.code.error().code, ErrorCode::kBusy) << "it had sent nothing";
  EXPECT_NE(ran.code.error().message.find(std::to_string(::getpid())), std::string::npos);
}

TEST(HolderServerTest, AHolderThatEndsAfterwardsHasToldItsClient) {
  for (int round = 0; round < 50; ++round) {
    const TempFolder folder;
    Gate over;
    auto server = start(folder.path(), [&over](const HolderRequest&, HolderStreams& streams) {
      streams.afterwards([&over] { over.open(); });
      return 7;
    });
    Ran ran;
    std::thread client([&] { ran = run_command(folder.path(), folder, {"x"}); });
    over.wait();
    server.reset();
    client.join();
    ASSERT_TRUE(ran.code.ok()) << ran.code.error().message;
    EXPECT_EQ(*ran.code, 7);
  }
}

TEST(HolderServerTest, PeersThatStopInTheMiddleAreHungUpOn) {
  const TempFolder folder;
  const auto server = start(folder.path(), shout, 8, 20'000);
  const std::string request = encode_frame(FrameType::kRequest, std::string(100, 'r'));
  std::string hostile(kFrameHeadBytes, '\xff');
  for (const std::string& begun :
       {std::string(), request.substr(0, 3), request.substr(0, 50), request, hostile,
        encode_frame(FrameType::kOut, "x")}) {
    const Descriptor socket = raw_connection(folder.path());
    ASSERT_TRUE(read_frame(socket, kPatience).ok());
    ASSERT_EQ(::send(socket.fd(), begun.data(), begun.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(begun.size()));
    const Result<Frame> answer = read_frame(socket, kPatience);
    ASSERT_FALSE(answer.ok());
    EXPECT_EQ(answer.error().code, ErrorCode::kCancelled);
  }
  wait_until([&] { return server->stats().refused == 6; });
  EXPECT_EQ(server->stats().served, 0u);
}

TEST(HolderServerTest, ClientThatDoesNotReadHoldsUpItsOwnCommandOnly) {
  const TempFolder folder;
  Gate ended;
  const auto server = start(
      folder.path(),
      [&](const HolderRequest& request, HolderStreams& streams) {
        if (request.arguments.front() == "quick") return 0;
        const std::string text(1000, 't');
        while (streams.out() << text) {
        }
        ended.open();
        return 0;
      },
      8, 20'000);
  const Descriptor socket = raw_connection(folder.path());
  ASSERT_TRUE(read_frame(socket, kPatience).ok());
  HolderRequest request;
  request.arguments = {"endless"};
  ASSERT_TRUE(write_frame(socket, FrameType::kRequest, *encode_request(request), 1'000'000).ok());
  EXPECT_TRUE(run_command(folder.path(), folder, {"quick"}).code.ok());
  ended.wait();
}

TEST(HolderServerTest, ManyClientsAtOnceEachGetTheirOwn) {
  const TempFolder folder;
  const auto server = start(folder.path(), shout);
  std::vector<std::thread> clients;
  for (int i = 0; i < 8; ++i) {
    clients.emplace_back([&, i] {
      for (int round = 0; round < 20; ++round) {
        const std::string word = std::to_string(i * 100 + round);
        Ran ran = run_command(folder.path(), folder, {word}, "a\nb\n");
        // The one before it may not have left yet.
        while (!ran.code.ok() && ran.code.error().code == ErrorCode::kBusy) {
          ran = run_command(folder.path(), folder, {word}, "a\nb\n");
        }
        ASSERT_TRUE(ran.code.ok()) << ran.code.error().message;
        EXPECT_EQ(ran.out, word + " \nA\nB\n");
      }
    });
  }
  for (std::thread& client : clients) client.join();
  EXPECT_EQ(server->stats().served, 160u);
}

TEST(HolderServerTest, WhatAHandlerThrowsIsReportedToItsClient) {
  const TempFolder folder;
  const auto server = start(folder.path(), [](const HolderRequest&, HolderStreams& streams) -> int {
    streams.out() << "begun\n";
    throw std::runtime_error("no such thing");
  });
  const Ran ran = run_command(folder.path(), folder, {"x"});
  ASSERT_TRUE(ran.code.ok());
  EXPECT_EQ(*ran.code, 1);
  EXPECT_EQ(ran.out, "begun\n");
  EXPECT_EQ(ran.err, "emberkv: no such thing\n");
}

// A socket that greets as it is told to.
Result<std::unique_ptr<HolderClient>> greeted_with(const std::string& folder,
                                                   const std::string& bytes) {
  const Descriptor listener = std::move(make_unix_socket()).value();
  EXPECT_EQ(SocketAddress::in_folder(folder)->bind(listener), 0);
  EXPECT_EQ(::listen(listener.fd(), 1), 0);
  std::thread server([&] {
    int fd = -1;
    wait_until([&] { return (fd = ::accept(listener.fd(), nullptr, nullptr)) >= 0; });
    const Descriptor socket(fd);
    EXPECT_EQ(::send(fd, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
    // Until the client has made up its mind.
    char byte = 0;
    EXPECT_LE(::recv(fd, &byte, 1, 0), 0);
  });
  Result<std::unique_ptr<HolderClient>> client = HolderClient::connect(folder, 200'000);
  if (client.ok()) client->reset();
  server.join();
  return client;
}

TEST(HolderClientTest, AnotherVersionIsRefusedByItsName) {
  const TempFolder folder;
  const auto client = greeted_with(
      folder.path(),
      encode_frame(FrameType::kGreeting, encode_greeting({42, false, 4711, "9.9.9"})));
  ASSERT_FALSE(client.ok());
  EXPECT_EQ(client.error().code, ErrorCode::kUnsupported);
  const std::string ours = "version " + std::to_string(kHolderProtocolVersion);
  for (const std::string& named : {std::string("4711"), std::string("9.9.9"),
                                   std::string("version 42"), ours}) {
    EXPECT_NE(client.error().message.find(named), std::string::npos) << client.error().message;
  }
}

TEST(HolderClientTest, StrangersAndSilenceAreTold) {
  const TempFolder one;
  const auto stranger = greeted_with(one.path(), "SSH-2.0-OpenSSH_9.2\r\n");
  ASSERT_FALSE(stranger.ok());
  EXPECT_EQ(stranger.error().code, ErrorCode::kIo);
  const TempFolder two;
  const auto silent = greeted_with(two.path(), "");
  ASSERT_FALSE(silent.ok());
  EXPECT_EQ(silent.error().code, ErrorCode::kBusy);
}

TEST(HolderClientTest, NobodyAnswersInAFolderWithoutAHolderOrWithoutAFolder) {
  const TempFolder folder;
  const auto none = HolderClient::connect(folder.path());
  ASSERT_TRUE(none.ok());
  EXPECT_EQ(*none, nullptr);
  const auto nowhere = HolderClient::connect(folder / "nowhere");
  ASSERT_TRUE(nowhere.ok());
  EXPECT_EQ(*nowhere, nullptr);
}

}  // namespace
}  // namespace ember
