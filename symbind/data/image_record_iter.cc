#include "symbind/data/image_record_iter.h"

#include <algorithm>
#include <cstring>
#include <unordered_map>

#include "symbind/core/input_file.h"
#include "symbind/core/log.h"
#include "symbind/data/batch_pipeline.h"
#include "symbind/data/codec.h"
#include "symbind/data/image_augment.h"
#include "symbind/data/record_source.h"
#include "symbind/data/text_rows.h"

namespace symbind {
namespace {

using LabelsById = std::unordered_map<uint64_t, std::vector<float>>;

// A line: the id, the labels, the path of the image, between tabs.
void parse_list_line(std::string_view line, int64_t label_width, LabelsById& labels) {
  std::vector<std::string_view> words;
  for (std::string_view rest = line;;) {
    const size_t tab = rest.find('\t');
    words.push_back(trimmed(rest.substr(0, tab)));
    if (tab == std::string_view::npos) break;
    rest.remove_prefix(tab + 1);
  }
  if (static_cast<int64_t>(words.size()) != label_width + 2)
    throw LineError{line.data(), join("expected an id, ", label_width, label_width == 1 ? " label" : " labels",
                                      " and a path between tabs: found ", words.size(), " words")};
  std::vector<float>& of = labels[static_cast<uint64_t>(number_in<double>(words[0]))];
  of.clear();
  for (size_t i = 1; i + 1 < words.size(); ++i) of.push_back(number_in<float>(words[i]));
}

LabelsById read_image_list(const std::string& path, int64_t label_width) {
  LabelsById all;
  std::vector<LabelsById> pieces(most_pieces());
  for_each_line_block(
      path,
      [&](std::string_view text, size_t piece) {
        pieces[piece].clear();
        while (!text.empty())
          if (const std::string_view line = take_line(text); !line.empty())
            parse_list_line(line, label_width, pieces[piece]);
      },
      [&](size_t piece) {
        for (auto& [id, labels] : pieces[piece]) all.insert_or_assign(id, std::move(labels));
      });
  return all;
}

ImageRecordIterOptions checked(ImageRecordIterOptions o) {
  constexpr std::string_view who = "[ImageRecordIter] ";
  require(!o.path_imgrec.empty(), who, "needs path_imgrec, a RecordIO file of images");
  require(o.data_shape.rank() == 3 && o.data_shape.size() > 0, who,
          "data_shape must be (channels, height, width): ", o.data_shape);
  require(o.data_shape[0] == 1 || o.data_shape[0] == 3 || o.data_shape[0] == 4, who,
          "data_shape must have 1, 3 or 4 channels: ", o.data_shape);
  require(o.data_shape[1] <= 100000 && o.data_shape[2] <= 100000, who, "data_shape is too large: ", o.data_shape);
  require(o.batch_size >= 1, who, "batch_size must be at least 1: ", o.batch_size);
  require(o.label_width >= 1, who, "label_width must be at least 1: ", o.label_width);
  require(o.preprocess_threads >= 1 && o.preprocess_threads <= 1024, who,
          "preprocess_threads must be between 1 and 1024: ", o.preprocess_threads);
  require(o.prefetch_buffer >= 1 && o.prefetch_buffer <= 1024, who,
          "prefetch_buffer must be between 1 and 1024: ", o.prefetch_buffer);
  require(o.shuffle_chunk_size >= 0 && o.shuffle_chunk_size <= 1 << 20, who,
          "shuffle_chunk_size must be between 0 and 1048576: ", o.shuffle_chunk_size);
  require(o.dtype == DType::float32 || o.dtype == DType::float16 || o.dtype == DType::uint8 || o.dtype == DType::int8,
          who, "dtype must be float32, float16, uint8 or int8: ", o.dtype);
  ImageAugmenter::check(o);
  return o;
}

struct Job : BatchJob {
  RecordBatch records;
  std::vector<std::string> wrong;  // why a sample could not be decoded; empty if it could
  char* images = nullptr;          // the batch's arrays
  float* labels = nullptr;
};

}  // namespace

class ImageRecordIter::Maker : public BatchMaker {
 public:
  explicit Maker(const ImageRecordIterOptions& options)
      : options_(options),
        batches_({.path = options.path_imgrec,
                  .index_path = options.path_imgidx,
                  .shuffle = options.shuffle,
                  .seed = static_cast<uint32_t>(options.seed),
                  .window_bytes = static_cast<uint64_t>(options.shuffle_chunk_size) << 20,
                  .num_parts = options.num_parts,
                  .part_index = options.part_index,
                  .who = "ImageRecordIter"},
                 options.batch_size, options.round_batch) {
    if (!options.path_imglist.empty()) labels_ = read_image_list(options.path_imglist, options.label_width);
    for (int64_t i = 0; i < options.preprocess_threads; ++i) workers_.push_back(std::make_unique<Worker>(options));
  }

  std::unique_ptr<BatchJob> plan() override;
  void make(BatchJob& job, size_t sample, size_t worker) override;
  void finish(BatchJob& job) override;

  // Both while nothing is being made.
  void reset(bool carry) { batches_.reset(carry); }
  void seed(uint64_t key) { key_ = key; }

 private:
  // What a thread has for itself.
  struct Worker {
    explicit Worker(const ImageRecordIterOptions& options) : reader(options.path_imgrec), augmenter(options) {}
    RecordReader reader;
    std::string record;
    Pixels decoded;
    ImageAugmenter augmenter;
  };

  void write_labels(const RecordHeader& header, float* to) const;
  size_t image_bytes() const { return static_cast<size_t>(options_.data_shape.size()) * size_of(options_.dtype); }

  const ImageRecordIterOptions& options_;
  RecordBatches batches_;
  LabelsById labels_;
  std::vector<std::unique_ptr<Worker>> workers_;
  uint64_t key_ = 0;
};

std::unique_ptr<BatchJob> ImageRecordIter::Maker::plan() {
  auto records = batches_.next();
  if (!records) return nullptr;
  const size_t size = records->offsets.size();
  auto job = std::make_unique<Job>();
  job->records = std::move(*records);
  job->batch.pad = job->records.pad;
  const Shape& image = options_.data_shape;
  job->batch.data = {NDArray({options_.batch_size, image[0], image[1], image[2]}, cpu(), options_.dtype)};
  job->batch.label = {NDArray(options_.label_width == 1 ? Shape{options_.batch_size}
                                                        : Shape{options_.batch_size, options_.label_width})};
  job->batch.index.resize(size);
  job->wrong.resize(size);
  job->images = static_cast<char*>(job->batch.data[0].mutable_data());
  job->labels = static_cast<float*>(job->batch.label[0].mutable_data());
  job->samples = size;
  return job;
}

void ImageRecordIter::Maker::write_labels(const RecordHeader& header, float* to) const {
  const auto width = static_cast<size_t>(options_.label_width);
  if (!options_.path_imglist.empty()) {
    const auto found = labels_.find(header.id);
    require(found != labels_.end(), "its id ", header.id, " is not in ", options_.path_imglist);
    std::copy(found->second.begin(), found->second.end(), to);
  } else if (header.labels.empty()) {
    require(width == 1, "label_width is ", width, ", but the record has one label");
    to[0] = header.label;
  } else {
    require(header.labels.size() == width, "label_width is ", width, ", but the record has ", header.labels.size(),
            header.labels.size() == 1 ? " label" : " labels");
    std::copy(header.labels.begin(), header.labels.end(), to);
  }
}

void ImageRecordIter::Maker::make(BatchJob& base, size_t sample, size_t number) {
  Job& job = static_cast<Job&>(base);
  Worker& worker = *workers_[number];
  const uint64_t offset = job.records.offsets[sample];
  worker.reader.seek(offset);
  require(worker.reader.read(worker.record), "[", options_.path_imgrec, "] there is no record at offset ", offset);
  try {
    const ImageRecord record = unpack_record(worker.record);
    job.batch.index[sample] = static_cast<int64_t>(record.header.id);
    write_labels(record.header, job.labels + sample * static_cast<size_t>(options_.label_width));
    try {
      decode_image(record.data, static_cast<int>(options_.data_shape[0]), worker.decoded);
    } catch (const Error& error) {
      if (!options_.skip_bad_images) throw;
      job.wrong[sample] = join("[ImageRecordIter] ", options_.path_imgrec, ": left out the image at offset ", offset,
                               ", id ", record.header.id, ": ", error.what());
      return;
    }
    SampleRandom random(key_, job.records.epoch, job.records.first + sample);
    const PixelView image = worker.augmenter.augment(worker.decoded.view(), random);
    worker.augmenter.write(image, random, job.images + sample * image_bytes());
  } catch (const Error& error) {
    fail("[", options_.path_imgrec, "] the record at offset ", offset, ": ", error.what());
  }
}

// Images that were left out are replaced by the first that was not.
void ImageRecordIter::Maker::finish(BatchJob& base) {
  Job& job = static_cast<Job&>(base);
  const auto found = std::find(job.wrong.begin(), job.wrong.end(), "");
  require(found != job.wrong.end(), "[", options_.path_imgrec,
          "] none of the images of a batch can be decoded; the last is at offset ", job.records.offsets.back());
  const auto good = static_cast<size_t>(found - job.wrong.begin());
  const auto width = static_cast<size_t>(options_.label_width);
  for (size_t i = 0; i < job.wrong.size(); ++i)
    if (!job.wrong[i].empty()) {
      std::memcpy(job.images + i * image_bytes(), job.images + good * image_bytes(), image_bytes());
      std::copy_n(job.labels + good * width, width, job.labels + i * width);
      job.batch.index[i] = job.batch.index[good];
    }
}

struct ImageRecordIter::State {
  explicit State(ImageRecordIterOptions given)
      : options(checked(std::move(given))),
        maker(options),
        pipeline(maker, static_cast<size_t>(options.preprocess_threads), static_cast<size_t>(options.prefetch_buffer),
                 "ImageRecordIter") {}

  ImageRecordIterOptions options;
  Maker maker;
  BatchPipeline pipeline;  // last: its threads end before what they use
  bool started = false;
  bool carry = false;  // the last batch handed out took samples of the next epoch
};

ImageRecordIter::ImageRecordIter(ImageRecordIterOptions options) : state_(std::make_unique<State>(std::move(options))) {
  const ImageRecordIterOptions& o = state_->options;
  if (o.verbose)
    log_info("[ImageRecordIter] ", o.path_imgrec, ", in batches of shape ", provide_data()[0].shape, ", by ",
             o.preprocess_threads, o.preprocess_threads == 1 ? " thread" : " threads");
}
ImageRecordIter::~ImageRecordIter() {
  if (!state_->pipeline.in_this_process()) (void)state_.release();
}

std::vector<DataDesc> ImageRecordIter::provide_data() const {
  const ImageRecordIterOptions& o = state_->options;
  return {{.name = o.data_name,
           .shape = {o.batch_size, o.data_shape[0], o.data_shape[1], o.data_shape[2]},
           .dtype = o.dtype}};
}
std::vector<DataDesc> ImageRecordIter::provide_label() const {
  const ImageRecordIterOptions& o = state_->options;
  return {
      {.name = o.label_name, .shape = o.label_width == 1 ? Shape{o.batch_size} : Shape{o.batch_size, o.label_width}}};
}
int64_t ImageRecordIter::batch_size() const { return state_->options.batch_size; }

void ImageRecordIter::reset() {
  const InUse use = in_use("reset");
  if (!state_->started) return;
  state_->pipeline.stop();
  state_->maker.reset(state_->carry);
  state_->started = state_->carry = false;
}

void ImageRecordIter::begin_epoch() {
  if (state_->started) return;
  if (const auto& seed = state_->options.seed_aug) {
    state_->maker.seed(static_cast<uint64_t>(*seed));
  } else {
    const RandomCursor cursor = host_random().take(1);
    const PhiloxBlock block = philox(cursor.key, cursor.draw, 0);
    state_->maker.seed(uint64_t{block.words[0]} << 32 | block.words[1]);
  }
  state_->started = true;
  state_->pipeline.start();
}

std::optional<DataBatch> ImageRecordIter::next() {
  const InUse use = in_use("next");
  begin_epoch();
  const std::unique_ptr<BatchJob> job = state_->pipeline.take();
  if (!job) return std::nullopt;
  for (const std::string& wrong : static_cast<Job&>(*job).wrong)
    if (!wrong.empty()) log_warning(wrong);
  state_->carry = state_->options.round_batch && job->batch.pad > 0;
  return std::move(job->batch);
}

}  // namespace symbind
