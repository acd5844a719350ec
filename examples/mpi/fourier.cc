// Fourier transforms over many ranks, with FFTW for what one rank does and MPI_Alltoallv between.
//
//   fourier --shape line --size n1|n2|AxB   one dimension of A * B points, three exchanges
//   fourier --shape slab --size XxYxZ       three dimensions, ranks hold slabs of x: one exchange
//   fourier --shape pencil --size XxYxZ     three dimensions, ranks hold pencils: two exchanges,
//   each
//                                           in the rows or columns of a grid of ranks
//           --iterations 5  --seed 1  --check yes|no  --spoil no|yes
//
// Model: an array of three dimensions lies in boxes, one a rank. An exchange takes every rank from
//   its box of one distribution to that of another: what it sends a rank is where its old box meets
//   the other's new one. Dimensions are cut into runs of ceil(n / parts), so the last ranks may
//   hold less or nothing: blocks are not equal. A line of A * B points is the array [A][B]
//   (four-step transform): lengths A in columns, a twist by the root of A * B, lengths B in rows,
//   then back into natural order. n1 and n2 are the sizes of the paper on configurable all-to-all-v
//   for P ranks: n1 = ceil(0.78125 P) ceil(0.625 P) 8, as 4 ceil(0.625 P) by 2 ceil(0.78125 P):
//   only ceil(0.625 P) ranks hold data; n2 = ((P-1) 32 + 8) P: all but the last rank send 32 points
//   a block, it sends 8.
// Check: against FFTW's transform of the whole on every rank; the largest error, as a part of the
//   largest value, must be below 1e-12 times the binary logarithm of the number of points. --spoil
//   changes one number before the last step: the check must notice.
#include <fftw3.h>
#include <mpi.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <complex>
#include <cstddef>
#include <cstdint>
#include <cstdio>
#include <numbers>
#include <string>
#include <vector>

#include "exchange_blocks.h"

namespace {

using Number = std::complex<double>;

struct Run {
  int begin = 0, end = 0;
  int size() const { return end - begin; }
};

Run Meet(Run a, Run b) {
  const int begin = std::max(a.begin, b.begin);
  return {begin, std::max(begin, std::min(a.end, b.end))};
}

// Part `part` of [0, size) in runs of equal length but the last ones.
Run Part(int size, int parts, int part) {
  const int length = (size + parts - 1) / parts;
  return {std::min(size, part * length), std::min(size, (part + 1) * length)};
}

using Shape = std::array<int, 3>;

struct Box {
  std::array<Run, 3> run;

  int size() const { return run[0].size() * run[1].size() * run[2].size(); }
  // Where a point of the whole array lies in the box.
  size_t At(int x, int y, int z) const {
    const int at = ((x - run[0].begin) * run[1].size() + (y - run[1].begin)) * run[2].size() +
                   (z - run[2].begin);
    return static_cast<size_t>(at);
  }
  template <class Visit>
  void ForEach(const Visit& visit) const {
    for (int x = run[0].begin; x < run[0].end; ++x) {
      for (int y = run[1].begin; y < run[1].end; ++y) {
        for (int z = run[2].begin; z < run[2].end; ++z) visit(x, y, z);
      }
    }
  }
};

Box Meet(const Box& a, const Box& b) {
  return {{Meet(a.run[0], b.run[0]), Meet(a.run[1], b.run[1]), Meet(a.run[2], b.run[2])}};
}

// A number in [-0.5, 0.5) for each point: the same on every rank.
double Draw(uint64_t seed, uint64_t point) {
  uint64_t x = seed * 0x9e3779b97f4a7c15ULL + point;
  x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9ULL;
  x = (x ^ (x >> 27)) * 0x94d049bb133111ebULL;
  x ^= x >> 31;
  return static_cast<double>(x >> 11) * 0x1p-53 - 0.5;
}

Number Input(uint64_t seed, uint64_t point) {
  return {Draw(seed, 2 * point), Draw(seed, 2 * point + 1)};
}

fftw_complex* Points(Number* numbers) { return reinterpret_cast<fftw_complex*>(numbers); }

// Transforms along one dimension, which the box must hold whole.
void TransformAlong(int dimension, const Box& box, std::vector<Number>* data) {
  if (box.size() == 0) return;
  const int x = box.run[0].size();
  const int y = box.run[1].size();
  const int z = box.run[2].size();
  const int lengths[] = {box.run[static_cast<size_t>(dimension)].size()};
  const int stride = dimension == 0 ? y * z : dimension == 1 ? z : 1;
  const int distance = dimension == 2 ? z : 1;
  const int transforms = dimension == 0 ? y * z : dimension == 1 ? z : x * y;
  fftw_plan plan = fftw_plan_many_dft(1, lengths, transforms, Points(data->data()), nullptr, stride,
                                      distance, Points(data->data()), nullptr, stride, distance,
                                      FFTW_FORWARD, FFTW_ESTIMATE | FFTW_UNALIGNED);
  for (int slice = 0; slice < (dimension == 1 ? x : 1); ++slice) {
    Number* const first = data->data() + static_cast<std::ptrdiff_t>(slice) * y * z;
    fftw_execute_dft(plan, Points(first), Points(first));
  }
  fftw_destroy_plan(plan);
}

// From the box `before[me]` to `after[me]`; both lists have a box for each rank of the
// communicator.
int Redistribute(const std::vector<Box>& before, const std::vector<Box>& after,
                 MPI_Comm communicator, std::vector<Number>* data,
                 examples::Communication* communication) {
  int rank = 0;
  MPI_Comm_rank(communicator, &rank);
  const auto me = static_cast<size_t>(rank);
  std::vector<int> send_counts, receive_counts;
  std::vector<Number> send;
  send.reserve(data->size());
  for (size_t peer = 0; peer < before.size(); ++peer) {
    const Box leaving = Meet(before[me], after[peer]);
    leaving.ForEach([&](int x, int y, int z) { send.push_back((*data)[before[me].At(x, y, z)]); });
    send_counts.push_back(leaving.size());
    receive_counts.push_back(Meet(before[peer], after[me]).size());
  }
  std::vector<Number> received(static_cast<size_t>(after[me].size()));
  if (const int error =
          examples::ExchangeBlocks(send, send_counts, &received, receive_counts,
                                   MPI_C_DOUBLE_COMPLEX, communicator, communication)) {
    return error;
  }
  data->resize(received.size());
  size_t next = 0;
  for (const Box& from : before) {
    Meet(from, after[me]).ForEach([&](int x, int y, int z) {
      (*data)[after[me].At(x, y, z)] = received[next++];
    });
  }
  return MPI_SUCCESS;
}

struct Job {
  std::string form;  // line, slab, pencil
  Shape shape;
  uint64_t seed;
  bool spoil;

  int64_t points() const { return int64_t{shape[0]} * shape[1] * shape[2]; }
};

// The part of the transform that this rank ends with.
struct Answer {
  Box box;
  std::vector<Number> data;
};

std::vector<Box> CutAlong(const Shape& shape, size_t dimension, int parts) {
  std::vector<Box> boxes;
  for (int part = 0; part < parts; ++part) {
    Box box{{Run{0, shape[0]}, Run{0, shape[1]}, Run{0, shape[2]}}};
    box.run[dimension] = Part(shape[dimension], parts, part);
    boxes.push_back(box);
  }
  return boxes;
}

void Fill(const Job& job, Answer* answer) {
  answer->data.resize(static_cast<size_t>(answer->box.size()));
  answer->box.ForEach([&](int x, int y, int z) {
    const int64_t point = (int64_t{x} * job.shape[1] + y) * job.shape[2] + z;
    answer->data[answer->box.At(x, y, z)] = Input(job.seed, static_cast<uint64_t>(point));
  });
}

void SpoilIfAsked(const Job& job, int rank, std::vector<Number>* data) {
  if (job.spoil && rank == 0 && !data->empty()) data->front() += 1.0;
}

int TransformLine(const Job& job, int rank, int size, Answer* answer,
                  examples::Communication* communication) {
  const std::vector<Box> rows = CutAlong(job.shape, 0, size);
  const std::vector<Box> columns = CutAlong(job.shape, 1, size);
  const auto me = static_cast<size_t>(rank);
  std::vector<Number>& data = answer->data;
  answer->box = rows[me];
  Fill(job, answer);
  if (const int error = Redistribute(rows, columns, MPI_COMM_WORLD, &data, communication)) {
    return error;
  }
  TransformAlong(0, columns[me], &data);
  columns[me].ForEach([&](int x, int y, int z) {
    const int64_t turn = int64_t{x} * y % job.points();
    const double angle =
        -2 * std::numbers::pi * static_cast<double>(turn) / static_cast<double>(job.points());
    data[columns[me].At(x, y, z)] *= std::polar(1.0, angle);
  });
  if (const int error = Redistribute(columns, rows, MPI_COMM_WORLD, &data, communication)) {
    return error;
  }
  SpoilIfAsked(job, rank, &data);
  TransformAlong(1, rows[me], &data);
  // Row a now holds every A-th value from a on: a rank that holds columns has a run of values.
  answer->box = columns[me];
  return Redistribute(rows, columns, MPI_COMM_WORLD, &data, communication);
}

int TransformSlab(const Job& job, int rank, int size, Answer* answer,
                  examples::Communication* communication) {
  const std::vector<Box> before = CutAlong(job.shape, 0, size);
  const std::vector<Box> after = CutAlong(job.shape, 1, size);
  const auto me = static_cast<size_t>(rank);
  answer->box = before[me];
  Fill(job, answer);
  TransformAlong(2, answer->box, &answer->data);
  TransformAlong(1, answer->box, &answer->data);
  if (const int error = Redistribute(before, after, MPI_COMM_WORLD, &answer->data, communication)) {
    return error;
  }
  answer->box = after[me];
  SpoilIfAsked(job, rank, &answer->data);
  TransformAlong(0, answer->box, &answer->data);
  return MPI_SUCCESS;
}

// The squarest grid of `size` ranks.
int RowsOfGrid(int size) {
  int rows = 1;
  for (int r = 1; r <= size / r; ++r) {
    if (size % r == 0) rows = r;
  }
  return rows;
}

int TransformPencil(const Job& job, int rank, int size, Answer* answer,
                    examples::Communication* communication) {
  const int rows = RowsOfGrid(size);
  const int columns = size / rows;
  const int row = rank / columns;
  const int column = rank % columns;
  // The boxes of row r and column c before the first, between and after the second exchange.
  const auto box = [&](int stage, int r, int c) {
    const Run whole_x{0, job.shape[0]};
    const Run whole_y{0, job.shape[1]};
    const Run whole_z{0, job.shape[2]};
    const Run x = stage == 2 ? whole_x : Part(job.shape[0], rows, r);
    const Run y = stage == 0   ? Part(job.shape[1], columns, c)
                  : stage == 1 ? whole_y
                               : Part(job.shape[1], rows, r);
    const Run z = stage == 0 ? whole_z : Part(job.shape[2], columns, c);
    return Box{{x, y, z}};
  };
  MPI_Comm row_ranks = MPI_COMM_NULL;
  MPI_Comm column_ranks = MPI_COMM_NULL;
  MPI_Comm_split(MPI_COMM_WORLD, row, column, &row_ranks);
  MPI_Comm_split(MPI_COMM_WORLD, column, row, &column_ranks);
  std::vector<Box> first, second, third, fourth;
  for (int c = 0; c < columns; ++c) {
    first.push_back(box(0, row, c));
    second.push_back(box(1, row, c));
  }
  for (int r = 0; r < rows; ++r) {
    third.push_back(box(1, r, column));
    fourth.push_back(box(2, r, column));
  }
  answer->box = box(0, row, column);
  Fill(job, answer);
  TransformAlong(2, answer->box, &answer->data);
  int error = Redistribute(first, second, row_ranks, &answer->data, communication);
  if (error == MPI_SUCCESS) {
    TransformAlong(1, box(1, row, column), &answer->data);
    error = Redistribute(third, fourth, column_ranks, &answer->data, communication);
  }
  if (error == MPI_SUCCESS) {
    answer->box = box(2, row, column);
    SpoilIfAsked(job, rank, &answer->data);
    TransformAlong(0, answer->box, &answer->data);
  }
  MPI_Comm_free(&row_ranks);
  MPI_Comm_free(&column_ranks);
  return error;
}

// The largest difference from FFTW's transform of the whole, as a part of its largest value.
double LargestError(const Job& job, const Answer& answer) {
  std::vector<Number> whole(static_cast<size_t>(job.points()));
  for (size_t i = 0; i < whole.size(); ++i) whole[i] = Input(job.seed, i);
  const bool line = job.form == "line";
  const int length[] = {static_cast<int>(job.points())};
  fftw_plan plan =
      fftw_plan_dft(line ? 1 : 3, line ? length : job.shape.data(), Points(whole.data()),
                    Points(whole.data()), FFTW_FORWARD, FFTW_ESTIMATE | FFTW_UNALIGNED);
  fftw_execute(plan);
  fftw_destroy_plan(plan);
  double largest = 0;
  for (const Number& value : whole) largest = std::max(largest, std::abs(value));
  double error = 0;
  answer.box.ForEach([&](int x, int y, int z) {
    const int64_t at =
        line ? x + int64_t{job.shape[0]} * y : (int64_t{x} * job.shape[1] + y) * job.shape[2] + z;
    error = std::max(
        error, std::abs(answer.data[answer.box.At(x, y, z)] - whole[static_cast<size_t>(at)]));
  });
  return error / largest;
}

// "AxB" or "AxBxC"; the paper's sizes by name.
bool ParseShape(const std::string& text, int ranks, bool line, Shape* shape) {
  const auto part = [ranks](double share) { return static_cast<int>(std::ceil(share * ranks)); };
  if (line && text == "n1") {
    *shape = {4 * part(0.625), 2 * part(0.78125), 1};
    return true;
  }
  if (line && text == "n2") {
    *shape = {(ranks - 1) * 32 + 8, ranks, 1};
    return true;
  }
  int used = 0;
  *shape = {0, 0, 1};
  const int read = line ? std::sscanf(text.c_str(), "%dx%d%n", &(*shape)[0], &(*shape)[1], &used)
                        : std::sscanf(text.c_str(), "%dx%dx%d%n", &(*shape)[0], &(*shape)[1],
                                      &(*shape)[2], &used);
  const bool complete = read == (line ? 2 : 3) && static_cast<size_t>(used) == text.size();
  if (!complete || *std::min_element(shape->begin(), shape->end()) < 1) return false;
  int64_t points = 1;
  for (const int length : *shape) {
    if (length > (1 << 28) / points) return false;
    points *= length;
  }
  return true;
}

int Main(int argc, char** argv) {
  int rank = 0;
  int size = 0;
  MPI_Comm_rank(MPI_COMM_WORLD, &rank);
  MPI_Comm_size(MPI_COMM_WORLD, &size);
  examples::Flags flags(argc, argv);
  Job job{.form = flags.Get("shape", "pencil"), .shape = {}, .seed = 0, .spoil = false};
  const bool line = job.form == "line";
  const std::string text = flags.Get("size", line ? "n2" : "32x32x32");
  const auto iterations = static_cast<int>(flags.GetNumber("iterations", 5, 1));
  job.seed = static_cast<uint64_t>(flags.GetNumber("seed", 1, 0));
  const bool check = flags.Get("check", "yes") == "yes";
  job.spoil = flags.Get("spoil", "no") == "yes";
  if (!line && job.form != "slab" && job.form != "pencil") {
    flags.Reject("--shape: got \"" + job.form + "\", wanted line, slab or pencil");
  }
  if (!ParseShape(text, size, line, &job.shape)) {
    flags.Reject("--size: got \"" + text + "\", wanted " + (line ? "n1, n2 or AxB" : "XxYxZ") +
                 " of at most 2^28 points");
  }
  if (const std::string wrong = flags.Finish(); !wrong.empty()) {
    return examples::Refuse(rank, "fourier", wrong);
  }

  const auto transform = line                 ? TransformLine
                         : job.form == "slab" ? TransformSlab
                                              : TransformPencil;
  Answer answer;
  examples::Communication first, communication;
  double all_s = 0;
  int error = transform(job, rank, size, &answer, &first);  // warms connections and caches
  for (int i = 0; i < iterations && error == MPI_SUCCESS; ++i) {
    MPI_Barrier(MPI_COMM_WORLD);
    const double since = MPI_Wtime();
    error = transform(job, rank, size, &answer, &communication);
    all_s += MPI_Wtime() - since;
  }
  if (error != MPI_SUCCESS) {
    std::fprintf(stderr, "fourier: an exchange failed with MPI error %d\n", error);
    return 1;
  }
  double mine[] = {communication.seconds, all_s, check ? LargestError(job, answer) : 0};
  double most[3];
  MPI_Reduce(mine, most, 3, MPI_DOUBLE, MPI_MAX, 0, MPI_COMM_WORLD);
  const double bound = 1e-12 * std::max(1.0, std::log2(static_cast<double>(job.points())));
  int good = rank != 0 || !check || most[2] < bound ? 1 : 0;
  MPI_Bcast(&good, 1, MPI_INT, 0, MPI_COMM_WORLD);
  if (rank == 0) {
    std::printf("fourier %s %dx%dx%d on %d ranks\n", job.form.c_str(), job.shape[0], job.shape[1],
                job.shape[2], size);
    if (check) {
      std::printf("largest error %.1e, %s\n", most[2],
                  good == 1 ? "as a serial transform" : "NOT as a serial transform");
    }
    std::printf("an iteration: communication %.1f us in %d calls, all %.1f us (slowest rank)\n",
                most[0] / iterations * 1e6, static_cast<int>(communication.calls / iterations),
                most[1] / iterations * 1e6);
  }
  return good == 1 ? 0 : 1;
}

}  // namespace

int main(int argc, char** argv) { return examples::RunProgram(Main, argc, argv); }
