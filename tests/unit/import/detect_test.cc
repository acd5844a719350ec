// A made-up sysfs: what is found in it, and how near it is.
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <optional>
#include <string>
#include <vector>

#include "support/text.h"
#include "tutti/import/import.h"

namespace tutti {
namespace {

namespace fs = std::filesystem;

class Sysfs : public testing::Test {
 protected:
  void SetUp() override {
    root_ = test_support::OwnPath("detect");
    fs::remove_all(root_);
    fs::create_directories(root_ / "sys/bus/pci/devices");
  }
  void TearDown() override { fs::remove_all(root_); }

  void Write(const fs::path& path, const std::string& text) {
    fs::create_directories(path.parent_path());
    std::ofstream(path) << text << "\n";
  }

  // A function below sys/devices, with its link among the PCI devices.
  fs::path AddPci(const std::string& path, const std::string& kind, const std::string& vendor,
                  const std::string& numa) {
    const fs::path real = root_ / "sys/devices" / path;
    Write(real / "class", kind);
    Write(real / "vendor", vendor);
    Write(real / "numa_node", numa);
    Write(real / "current_link_speed", "16.0 GT/s PCIe");
    Write(real / "current_link_width", "16");
    fs::create_directory_symlink(real, root_ / "sys/bus/pci/devices" / real.filename());
    return real;
  }

  void AddInfiniband(const std::string& name, const fs::path& device) {
    const fs::path folder = root_ / "sys/class/infiniband" / name;
    Write(folder / "node_guid", "0c42:a103:0000:0001");
    Write(folder / "ports/1/rate", "200 Gb/sec (4X HDR)");
    Write(folder / "ports/1/state", "4: ACTIVE");
    fs::create_directory_symlink(device, folder / "device");
  }

  fs::path root_;
};

TEST_F(Sysfs, FindsGpusNicsAndHowNearTheyAre) {
  const std::string one = "pci0000:00/0000:00:01.0/0000:01:00.0/";  // root port, switch
  AddPci(one + "0000:02:00.0/0000:03:00.0", "0x030200", "0x10de", "0");
  const fs::path nic = AddPci(one + "0000:02:01.0/0000:04:00.0", "0x020700", "0x15b3", "0");
  AddPci("pci0000:00/0000:00:02.0/0000:05:00.0", "0x030200", "0x10de", "0");
  AddPci("pci0000:80/0000:80:01.0/0000:81:00.0", "0x030200", "0x10de", "1");
  AddPci("pci0000:80/0000:80:02.0/0000:82:00.0", "0x030000", "0x1a03", "1");  // a display
  AddInfiniband("mlx5_0", nic);
  const Result<Facts> facts = DetectFacts(root_.string(), "here");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  const BoxFacts& box = facts->boxes[0];
  ASSERT_EQ(box.gpus.size(), 3u);
  ASSERT_EQ(box.nics.size(), 1u);
  EXPECT_EQ(box.gpus[2].id, "0000:81:00.0");
  EXPECT_EQ(box.gpus[0].pcie_bandwidth, 31'507'692'307);
  EXPECT_EQ(box.nics[0].bandwidth, 25'000'000'000);
  EXPECT_EQ(box.nics[0].guid, "0c42a10300000001");
  EXPECT_EQ(box.ClassOf(0, 3), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(0, 1), PathClass::kPhb);
  EXPECT_EQ(box.ClassOf(0, 2), PathClass::kSys);
  EXPECT_EQ(facts->notes.size(), 1u);  // NVLink
  const Result<Imported> imported = MergeFacts({*facts}, {});
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->topology.num_ranks(), 3);
}

TEST_F(Sysfs, AHostWithoutGpusIsOneRank) {
  const fs::path nic = AddPci("pci0000:00/0000:00:03.0", "0x020000", "0x1af4", "-1");
  Write(root_ / "sys/class/net/eth0/speed", "25000");
  fs::create_directory_symlink(nic, root_ / "sys/class/net/eth0/device");
  Write(root_ / "sys/class/net/lo/speed", "-1");
  const Result<Facts> facts = DetectFacts(root_.string(), "here");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_EQ(facts->boxes[0].nics.size(), 1u);
  EXPECT_EQ(facts->boxes[0].nics[0].bandwidth, 3'125'000'000);
  const Result<Imported> imported = MergeFacts({*facts}, {});
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->topology.num_ranks(), 1);
  EXPECT_EQ(imported->topology.node_name(NodeId{0}), "here");
}

TEST_F(Sysfs, SaysWhereThereIsNone) {
  const Result<Facts> facts = DetectFacts((root_ / "nowhere").string(), "here");
  ASSERT_FALSE(facts.has_value());
  EXPECT_NE(facts.error().message.find("nowhere"), std::string::npos);
  EXPECT_FALSE(DetectFacts(root_.string(), "two words").has_value());
}

// What hwloc shows in place of this host: hwloc itself reads the environment.
class InPlaceOfThisHost : public Sysfs {
 protected:
  void SetUp() override {
    Sysfs::SetUp();
    const Result<std::optional<HwlocView>> view = DetectByHwloc("here");
    ASSERT_TRUE(view.has_value()) << view.error().message;
    if (!*view) GTEST_SKIP() << "libhwloc is not installed";
  }
  void TearDown() override {
    unsetenv("HWLOC_SYNTHETIC");
    unsetenv("HWLOC_XMLFILE");
    Sysfs::TearDown();
  }

  static void Load(const std::string& sample) {
    setenv("HWLOC_XMLFILE", ("tests/data/import/hwloc-xml/" + sample).c_str(), 1);
  }
  void AddBoxOfTheSample() {
    for (const std::string domain : {"10", "80"}) {
      const std::string bus = domain == "10" ? "1" : "8";
      const std::string above = "pci0000:" + domain + "/0000:" + domain + ":01.0/";
      AddPci(above + "0000:" + bus + "2:00.0", "0x030200", "0x10de", domain == "10" ? "0" : "1");
    }
  }
};

TEST_F(InPlaceOfThisHost, ASyntheticMachineHasNoDevicesAndIsOneRank) {
  setenv("HWLOC_SYNTHETIC", "pack:2 core:4 pu:2", 1);
  const Result<std::vector<Facts>> facts = DetectHost("/", "here");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_EQ(facts->size(), 1u);  // sysfs is that of another machine
  EXPECT_EQ((*facts)[0].format, "hwloc");
  EXPECT_EQ((*facts)[0].notes,
            std::vector<std::string>{"hwloc in place of this host shows no GPU and no NIC"});
  const Result<Imported> imported = MergeFacts(*facts, {});
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->topology.num_ranks(), 1);
}

TEST_F(InPlaceOfThisHost, AFileOfHwlocIsShownAlone) {
  Load("two_a100_loadable.xml");
  const Result<std::vector<Facts>> facts = DetectHost("/", "here");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_EQ(facts->size(), 1u);
  const BoxFacts& box = (*facts)[0].boxes[0];
  EXPECT_EQ(box.host, "here");
  ASSERT_EQ(box.gpus.size(), 2u);
  EXPECT_EQ(box.gpus[0].id, "0000:12:00.0");
  EXPECT_EQ(box.gpus[1].id, "0000:82:00.0");
  ASSERT_EQ(box.nics.size(), 2u);
  EXPECT_EQ(box.ClassOf(0, 2), PathClass::kPix);
  EXPECT_EQ(box.ClassOf(0, 1), PathClass::kSys);
  const Result<Imported> imported = MergeFacts(*facts, {});
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->provenance[0].source, "hwloc in place of this host");
}

TEST_F(InPlaceOfThisHost, JoinsTheSysfsBelowAFolder) {
  Load("two_a100_loadable.xml");
  AddBoxOfTheSample();
  const Result<std::vector<Facts>> facts = DetectHost(root_.string(), "here");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_EQ(facts->size(), 2u);
  EXPECT_EQ((*facts)[0].format, "sysfs");
  EXPECT_EQ((*facts)[1].format, "hwloc");
  const Result<Imported> imported = MergeFacts(*facts, {});
  ASSERT_TRUE(imported.has_value()) << imported.error().message;
  EXPECT_EQ(imported->topology.num_ranks(), 2);
}

TEST_F(InPlaceOfThisHost, IsLeftOutWhereItCountsOtherGpus) {
  Load("two_a100_loadable.xml");
  AddPci("pci0000:10/0000:10:01.0/0000:12:00.0", "0x030200", "0x10de", "0");
  const Result<std::vector<Facts>> facts = DetectHost(root_.string(), "here");
  ASSERT_TRUE(facts.has_value()) << facts.error().message;
  ASSERT_EQ(facts->size(), 2u);
  EXPECT_TRUE((*facts)[1].boxes.empty());
  ASSERT_EQ((*facts)[1].notes.size(), 1u);
  EXPECT_NE((*facts)[1].notes[0].find("shows 2 GPUs"), std::string::npos);
}

TEST_F(InPlaceOfThisHost, WhatHwlocCannotLoadIsAnError) {
  std::ofstream(root_ / "half.xml") << "<topology version=\"2.0\"><object type=\"Machine\"";
  setenv("HWLOC_XMLFILE", (root_ / "half.xml").c_str(), 1);
  const Result<std::vector<Facts>> facts = DetectHost("/", "here");
  ASSERT_FALSE(facts.has_value());
  EXPECT_EQ(facts.error().code, ErrorCode::kCorrupt);
  EXPECT_NE(facts.error().message.find("HWLOC_XMLFILE"), std::string::npos);
}

}  // namespace
}  // namespace tutti
