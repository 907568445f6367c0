#include "symbind/data/image_record_iter.h"

#include <algorithm>
#include <cstring>

#include "symbind/core/log.h"
#include "symbind/data/codec.h"
#include "symbind/data/image_augment.h"
#include "symbind/data/image_list.h"
#include "symbind/data/record_epochs.h"

namespace symbind {
namespace {

constexpr std::string_view who = "ImageRecordIter";

ImageRecordIterOptions checked(ImageRecordIterOptions o) {
  check_record_options(o, who);
  require(o.data_shape.rank() == 3 && o.data_shape.size() > 0, "[", who,
          "] data_shape must be (channels, height, width): ", o.data_shape);
  require(o.data_shape[0] == 1 || o.data_shape[0] == 3 || o.data_shape[0] == 4, "[", who,
          "] data_shape must have 1, 3 or 4 channels: ", o.data_shape);
  require(o.data_shape[1] <= 100000 && o.data_shape[2] <= 100000, "[", who,
          "] data_shape is too large: ", o.data_shape);
  require(o.label_width >= 1, "[", who, "] label_width must be at least 1: ", o.label_width);
  require(o.dtype == DType::float32 || o.dtype == DType::float16 || o.dtype == DType::uint8 || o.dtype == DType::int8,
          "[", who, "] dtype must be float32, float16, uint8 or int8: ", o.dtype);
  ImageAugmenter::check(o);
  if (o.normalize_on_device) {
    require(is_floating(o.dtype), "[", who,
            "] normalize_on_device needs a floating dtype, that of the normalized images, not ", o.dtype);
    require(!o.mean_image && o.max_random_contrast == 0 && o.max_random_illumination == 0, "[", who,
            "] normalize_on_device normalizes each channel alike: it excludes mean_img, max_random_contrast and "
            "max_random_illumination");
  }
  return o;
}

DType pixel_type(const ImageRecordIterOptions& o) { return o.normalize_on_device ? DType::uint8 : o.dtype; }

std::vector<DataDesc> describe_data(const ImageRecordIterOptions& o) {
  const Shape& image = o.data_shape;
  DataDesc data{.name = o.data_name, .shape = {o.batch_size, image[0], image[1], image[2]}, .dtype = o.dtype};
  if (o.normalize_on_device) {
    std::vector<double> mean{o.mean_r, o.mean_g, o.mean_b, o.mean_a}, std{o.std_r, o.std_g, o.std_b, o.std_a};
    mean.resize(static_cast<size_t>(image[0]));
    std.resize(static_cast<size_t>(image[0]));
    data.normalization = {.mean = std::move(mean), .std = std::move(std), .scale = o.scale};
  }
  return {data};
}

struct Job : BatchJob {
  RecordBatch records;
  std::vector<std::string> wrong;  // why a sample could not be decoded; empty if it could
  char* images = nullptr;          // the batch's arrays
  float* labels = nullptr;
};

}  // namespace

class ImageRecordIter::Maker : public RecordMaker {
 public:
  explicit Maker(const ImageRecordIterOptions& options)
      : RecordMaker(record_source_of(options, who), options.batch_size, options.round_batch), options_(options) {
    if (!options.path_imglist.empty()) labels_ = read_image_list(options.path_imglist, options.label_width);
    for (int64_t i = 0; i < options.preprocess_threads; ++i) workers_.push_back(std::make_unique<Worker>(options));
  }

  std::unique_ptr<BatchJob> plan() override;
  void make(BatchJob& job, size_t sample, size_t worker) override;
  void finish(BatchJob& job) override;

 private:
  // The data of one thread.
  struct Worker {
    explicit Worker(const ImageRecordIterOptions& options) : reader(options.path_imgrec), augmenter(options) {}
    RecordReader reader;
    std::string record;
    Pixels decoded;
    ImageAugmenter augmenter;
  };

  void write_labels(const RecordHeader& header, float* to) const;
  size_t image_bytes() const { return static_cast<size_t>(options_.data_shape.size()) * size_of(pixel_type(options_)); }

  const ImageRecordIterOptions& options_;
  LabelsById labels_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

std::unique_ptr<BatchJob> ImageRecordIter::Maker::plan() {
  auto records = next_records();
  if (!records) return nullptr;
  const size_t size = records->offsets.size();
  auto job = std::make_unique<Job>();
  job->records = std::move(*records);
  job->batch.pad = job->records.pad;
  std::vector<DataDesc> described = describe_data(options_);
  job->batch.data = {NDArray(described[0].shape, cpu(), pixel_type(options_))};
  // Modules bound to another iterator, such as the one for training, learn the normalization from the batch.
  if (options_.normalize_on_device) job->batch.provide_data = std::move(described);
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
    std::ranges::copy(listed_labels(labels_, header.id, options_.path_imglist), to);
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
  read(worker.reader, offset, worker.record);
  try {
    const ImageRecord record = unpack_record(worker.record);
    job.batch.index[sample] = static_cast<int64_t>(record.header.id);
    write_labels(record.header, job.labels + sample * static_cast<size_t>(options_.label_width));
    try {
      decode_image(record.data, static_cast<int>(options_.data_shape[0]), worker.decoded);
    } catch (const Error& error) {
      if (!options_.skip_bad_images) throw;
      job.wrong[sample] = join("[", who, "] ", path(), ": left out the image at offset ", offset, ", id ",
                               record.header.id, ": ", error.what());
      return;
    }
    SampleRandom random(key(), job.records.epoch, job.records.first + sample);
    const PixelView image = worker.augmenter.augment(worker.decoded.view(), random);
    worker.augmenter.write(image, random, job.images + sample * image_bytes());
  } catch (const Error& error) {
    fail("[", path(), "] the record at offset ", offset, ": ", error.what());
  }
}

// Images that could not be decoded are replaced by the first that could.
void ImageRecordIter::Maker::finish(BatchJob& base) {
  Job& job = static_cast<Job&>(base);
  const auto found = std::find(job.wrong.begin(), job.wrong.end(), "");
  require(found != job.wrong.end(), "[", path(),
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
      : options(checked(std::move(given))), maker(options), epochs(maker, options, who) {}

  ImageRecordIterOptions options;
  Maker maker;
  RecordEpochs epochs;  // last: destroyed first, since its threads use the members above
};

ImageRecordIter::ImageRecordIter(ImageRecordIterOptions options) : state_(std::make_unique<State>(std::move(options))) {
  const ImageRecordIterOptions& o = state_->options;
  if (o.verbose)
    log_info("[", who, "] ", o.path_imgrec, ", in batches of shape ", provide_data()[0].shape, ", by ",
             o.preprocess_threads, o.preprocess_threads == 1 ? " thread" : " threads");
}
ImageRecordIter::~ImageRecordIter() {
  if (!state_->epochs.in_this_process()) (void)state_.release();
}

std::vector<DataDesc> ImageRecordIter::provide_data() const { return describe_data(state_->options); }
std::vector<DataDesc> ImageRecordIter::provide_label() const {
  const ImageRecordIterOptions& o = state_->options;
  return {
      {.name = o.label_name, .shape = o.label_width == 1 ? Shape{o.batch_size} : Shape{o.batch_size, o.label_width}}};
}
int64_t ImageRecordIter::batch_size() const { return state_->options.batch_size; }

void ImageRecordIter::reset() {
  const InUse use = in_use("reset");
  state_->epochs.reset();
}

void ImageRecordIter::begin_epoch() {
  const ImageRecordIterOptions& o = state_->options;
  state_->epochs.begin(o.seed_aug ? o.seed_aug : o.seed);
}

std::optional<DataBatch> ImageRecordIter::next() {
  const InUse use = in_use("next");
  begin_epoch();
  const std::unique_ptr<BatchJob> job = state_->epochs.next();
  if (!job) return std::nullopt;
  for (const std::string& wrong : static_cast<Job&>(*job).wrong)
    if (!wrong.empty()) log_warning(wrong);
  return std::move(job->batch);
}

}  // namespace symbind
