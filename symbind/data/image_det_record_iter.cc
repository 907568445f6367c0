#include "symbind/data/image_det_record_iter.h"

#include <algorithm>
#include <cmath>
#include <cstring>

#include "symbind/core/log.h"
#include "symbind/data/codec.h"
#include "symbind/data/image_augment.h"
#include "symbind/data/image_list.h"
#include "symbind/data/record_epochs.h"
#include "symbind/image/resize.h"

namespace symbind {
namespace {

constexpr std::string_view who = "ImageDetRecordIter";
constexpr size_t front = 4;  // numbers before the record's own labels: channels, height, width, how many follow

ImageDetRecordIterOptions checked(ImageDetRecordIterOptions o) {
  check_record_options(o, who);
  require(o.data_shape.rank() == 3 && o.data_shape.size() > 0 && (o.data_shape[0] == 1 || o.data_shape[0] == 3), "[",
          who, "] data_shape must be (channels, height, width) with 1 or 3 channels: ", o.data_shape);
  require(o.resize_mode == "force" || o.resize_mode == "shrink" || o.resize_mode == "fit", "[", who,
          "] resize_mode must be force, shrink or fit: ", o.resize_mode);
  require(o.crop_emit_mode == "center" || o.crop_emit_mode == "overlap", "[", who,
          "] crop_emit_mode must be center or overlap: ", o.crop_emit_mode);
  require(o.max_pad_scale >= 1 && o.max_pad_scale <= 100, "[", who,
          "] max_pad_scale must be in 1 … 100: ", o.max_pad_scale);
  require(o.fill_value >= 0 && o.fill_value <= 255, "[", who, "] fill_value must be in 0 … 255: ", o.fill_value);
  require(o.num_crop_sampler >= 0 && o.num_crop_sampler <= 1000, "[", who,
          "] num_crop_sampler must be between 0 and 1000: ", o.num_crop_sampler);
  for (const auto* list : {&o.min_crop_scales, &o.max_crop_scales, &o.min_crop_aspect_ratios, &o.max_crop_aspect_ratios,
                           &o.min_crop_overlaps, &o.max_crop_overlaps, &o.min_crop_sample_coverages,
                           &o.max_crop_sample_coverages, &o.min_crop_object_coverages, &o.max_crop_object_coverages})
    require(!list->empty(), "[", who, "] a list that describes samplers of crops must not be empty");
  require(!o.max_crop_trials.empty(), "[", who, "] max_crop_trials must not be empty");
  return o;
}

// The options that the shared code of image_augment.h reads.
ImageRecordIterOptions normalization(const ImageDetRecordIterOptions& o) {
  ImageRecordIterOptions n;
  n.data_shape = o.data_shape;
  n.mean_r = o.mean_r, n.mean_g = o.mean_g, n.mean_b = o.mean_b;
  // 0 is MXNet's default here, and means 1.
  n.std_r = o.std_r > 0 ? o.std_r : 1, n.std_g = o.std_g > 0 ? o.std_g : 1, n.std_b = o.std_b > 0 ? o.std_b : 1;
  n.scale = o.scale;
  n.inter_method = o.inter_method;
  ImageAugmenter::check(n);
  return n;
}

struct Box {
  float left = 0, top = 0, right = 0, bottom = 0;
  float area() const { return std::max(0.F, right - left) * std::max(0.F, bottom - top); }
};

float common_area(const Box& a, const Box& b) {
  return Box{std::max(a.left, b.left), std::max(a.top, b.top), std::min(a.right, b.right), std::min(a.bottom, b.bottom)}
      .area();
}

// The labels of a record, with access to the boxes in them.
class Labels {
 public:
  explicit Labels(std::vector<float> values) : values_(std::move(values)) {
    require(values_.size() >= 2, "the labels of an image with objects begin with two lengths: there are ",
            values_.size(), " labels");
    const auto count = static_cast<int64_t>(values_.size());
    const auto between = [](float value, float low, int64_t high) {  // false of NaN
      return value >= low && value <= static_cast<float>(high);
    };
    // A label without objects may give an object length larger than its number count.
    if (between(values_[0], 2, count) && between(values_[1], 5, 1 << 24)) {
      head_ = static_cast<int64_t>(values_[0]);
      length_ = static_cast<int64_t>(values_[1]);
    }
    require(head_ > 0 && head_ <= count && (count - head_) % length_ == 0, "a label of ", count,
            " numbers cannot have a head of ", values_[0], " and objects of ", values_[1], " numbers each");
  }
  int64_t objects() const { return (static_cast<int64_t>(values_.size()) - head_) / length_; }
  Box box(int64_t object) const {
    const float* at = values_.data() + head_ + object * length_ + 1;
    return {at[0], at[1], at[2], at[3]};
  }
  void set_box(int64_t object, const Box& box) {
    float* at = values_.data() + head_ + object * length_ + 1;
    at[0] = box.left, at[1] = box.top, at[2] = box.right, at[3] = box.bottom;
  }
  // Keeps the objects for which keep(object) is true.
  template <class Keep>
  void filter(Keep keep) {
    std::vector<float> kept(values_.begin(), values_.begin() + head_);
    for (int64_t i = 0; i < objects(); ++i)
      if (keep(i))
        kept.insert(kept.end(), values_.begin() + head_ + i * length_, values_.begin() + head_ + (i + 1) * length_);
    values_ = std::move(kept);
  }
  // Converts every box to the coordinates of a window of the image.
  void move_into(const Box& window) {
    const float width = window.right - window.left, height = window.bottom - window.top;
    for (int64_t i = 0; i < objects(); ++i) {
      const Box old = box(i);
      const auto x = [&](float at) { return std::clamp((at - window.left) / width, 0.F, 1.F); };
      const auto y = [&](float at) { return std::clamp((at - window.top) / height, 0.F, 1.F); };
      set_box(i, {x(old.left), y(old.top), x(old.right), y(old.bottom)});
    }
  }
  const std::vector<float>& values() const { return values_; }

 private:
  std::vector<float> values_;
  int64_t head_ = 0, length_ = 0;
};

template <class Value>
Value of_sampler(const std::vector<Value>& list, int64_t sampler) {
  return list[std::min(static_cast<size_t>(sampler), list.size() - 1)];
}

// A window that meets the constraints for some object, and the remaining labels in it; none if all trials fail.
std::optional<Box> draw_crop(const ImageDetRecordIterOptions& o, int64_t k, Labels& labels, SampleRandom& random) {
  const auto within = [&](float value, const std::vector<float>& low, const std::vector<float>& high) {
    return value >= of_sampler(low, k) && value <= of_sampler(high, k);
  };
  for (int64_t trial = 0; trial < of_sampler(o.max_crop_trials, k); ++trial) {
    const float scale = random.uniform(of_sampler(o.min_crop_scales, k), of_sampler(o.max_crop_scales, k));
    const float ratio =
        random.uniform(of_sampler(o.min_crop_aspect_ratios, k), of_sampler(o.max_crop_aspect_ratios, k));
    if (!(scale > 0 && ratio > 0)) continue;
    const float width = scale * std::sqrt(ratio), height = scale / std::sqrt(ratio);
    if (width > 1 || height > 1) continue;
    const float left = random.uniform(0, 1 - width), top = random.uniform(0, 1 - height);
    const Box window{left, top, left + width, top + height};
    bool accepted = labels.objects() == 0;
    for (int64_t i = 0; i < labels.objects() && !accepted; ++i) {
      const Box box = labels.box(i);
      const float common = common_area(box, window);
      if (common <= 0) continue;
      accepted = within(common / (box.area() + window.area() - common), o.min_crop_overlaps, o.max_crop_overlaps) &&
                 within(common / window.area(), o.min_crop_sample_coverages, o.max_crop_sample_coverages) &&
                 within(common / box.area(), o.min_crop_object_coverages, o.max_crop_object_coverages);
    }
    if (!accepted) continue;
    Labels left_over = labels;
    left_over.filter([&](int64_t i) {
      const Box box = labels.box(i);
      if (o.crop_emit_mode == "overlap") return common_area(box, window) > o.emit_overlap_thresh * box.area();
      const float x = (box.left + box.right) / 2, y = (box.top + box.bottom) / 2;
      return x >= window.left && x <= window.right && y >= window.top && y <= window.bottom;
    });
    if (labels.objects() > 0 && left_over.objects() == 0) continue;
    left_over.move_into(window);
    labels = left_over;
    return window;
  }
  return std::nullopt;
}

BasicPixelView<uint8_t> mutable_view(Pixels& image) {
  return {image.data(), image.height(), image.width(), image.channels(), image.width() * image.channels()};
}

struct Job : BatchJob {
  RecordBatch records;
  float* images = nullptr;
  float* labels = nullptr;
};

}  // namespace

class ImageDetRecordIter::Maker : public RecordMaker {
 public:
  explicit Maker(const ImageDetRecordIterOptions& options)
      : RecordMaker(record_source_of(options, who), options.batch_size, options.round_batch),
        options_(options),
        normalization_(normalization(options)),
        list_(options.path_imglist.empty() ? LabelsById() : read_image_list(options.path_imglist, options.label_width)),
        label_width_(front + static_cast<size_t>(longest_label())) {
    for (int64_t i = 0; i < options.preprocess_threads; ++i)
      workers_.push_back(std::make_unique<Worker>(options, normalization_));
  }

  int64_t label_width() const { return static_cast<int64_t>(label_width_); }
  std::unique_ptr<BatchJob> plan() override;
  void make(BatchJob& job, size_t sample, size_t worker) override;
  void finish(BatchJob&) override {}

 private:
  struct Worker {
    Worker(const ImageDetRecordIterOptions& options, const ImageRecordIterOptions& normalization)
        : reader(options.path_imgrec), augmenter(normalization) {}
    RecordReader reader;
    std::string record;
    Pixels decoded, resized, padded, fitted;
    ImageAugmenter augmenter;
  };

  int64_t longest_label() const;
  const std::vector<float>& labels_of(const RecordHeader& header) const {
    return options_.path_imglist.empty() ? header.labels : listed_labels(list_, header.id, options_.path_imglist);
  }
  PixelView pad_and_crop(PixelView image, Worker& worker, Labels& labels, SampleRandom& random) const;
  PixelView fit(PixelView image, Worker& worker, int64_t& height, int64_t& width, SampleRandom& random) const;
  void color(Pixels& image, SampleRandom& random) const;
  int method(PixelView image, int64_t height, int64_t width, SampleRandom& random) const {
    if (options_.inter_method == interpolation::random) return static_cast<int>(random.whole(0, 4));
    return interpolation_for(static_cast<int>(options_.inter_method), image.height, image.width, height, width,
                             std::string(who));
  }

  const ImageDetRecordIterOptions& options_;
  const ImageRecordIterOptions normalization_;
  const LabelsById list_;  // of path_imglist
  size_t label_width_;
  std::vector<std::unique_ptr<Worker>> workers_;
};

// Over all records of the file, or all lines of the list, so that every worker has labels of the same shape.
int64_t ImageDetRecordIter::Maker::longest_label() const {
  size_t most = 0;
  for (const auto& [id, labels] : list_) most = std::max(most, labels.size());
  if (options_.path_imglist.empty()) {
    RecordReader reader(path());
    for (std::string record; reader.read(record);) most = std::max(most, unpack_record(record).header.labels.size());
  }
  const auto longest = static_cast<int64_t>(most);
  require(options_.label_pad_width <= 0 || options_.label_pad_width >= longest, "[", who,
          "] label_pad_width must be at least that of the longest label, ", longest, ": ", options_.label_pad_width);
  return std::max(longest, options_.label_pad_width);
}

std::unique_ptr<BatchJob> ImageDetRecordIter::Maker::plan() {
  auto records = next_records();
  if (!records) return nullptr;
  auto job = std::make_unique<Job>();
  job->records = std::move(*records);
  job->batch.pad = job->records.pad;
  job->samples = job->records.offsets.size();
  const Shape& image = options_.data_shape;
  job->batch.data = {NDArray({options_.batch_size, image[0], image[1], image[2]})};
  job->batch.label = {NDArray({options_.batch_size, label_width()})};
  job->batch.index.resize(job->samples);
  job->images = static_cast<float*>(job->batch.data[0].mutable_data());
  job->labels = static_cast<float*>(job->batch.label[0].mutable_data());
  return job;
}

// Pads and crops, each with its probability.
PixelView ImageDetRecordIter::Maker::pad_and_crop(PixelView image, Worker& worker, Labels& labels,
                                                  SampleRandom& random) const {
  const ImageDetRecordIterOptions& o = options_;
  if (random.unit() < o.rand_crop_prob && o.num_crop_sampler > 0) {
    const int64_t sampler = random.whole(0, o.num_crop_sampler - 1);
    if (const auto window = draw_crop(o, sampler, labels, random)) {
      const auto w = static_cast<float>(image.width), h = static_cast<float>(image.height);
      const auto x = static_cast<int64_t>(window->left * w), y = static_cast<int64_t>(window->top * h);
      const auto side = [](float part, int64_t most) { return std::clamp<int64_t>(std::lround(part), 1, most); };
      image = image.window(y, x, side((window->bottom - window->top) * h, image.height - y),
                           side((window->right - window->left) * w, image.width - x));
    }
  }
  if (random.unit() < o.rand_pad_prob && o.max_pad_scale > 1) {
    const float scale = random.uniform(1, o.max_pad_scale);
    const auto height = static_cast<int64_t>(scale * static_cast<float>(image.height)),
               width = static_cast<int64_t>(scale * static_cast<float>(image.width));
    const int64_t y = random.whole(0, height - image.height), x = random.whole(0, width - image.width);
    worker.padded.resize(height, width, image.channels);
    std::memset(worker.padded.data(), static_cast<int>(o.fill_value), worker.padded.bytes());
    for (int64_t row = 0; row < image.height; ++row)
      std::memcpy(worker.padded.row(y + row) + x * image.channels, image.row(row),
                  static_cast<size_t>(image.width * image.channels));
    const auto w = static_cast<float>(image.width), h = static_cast<float>(image.height);
    labels.move_into({-static_cast<float>(x) / w, -static_cast<float>(y) / h, static_cast<float>(width - x) / w,
                      static_cast<float>(height - y) / h});
    image = worker.padded.view();
  }
  return image;
}

// An image of data_shape's size, of which height × width are filled.
PixelView ImageDetRecordIter::Maker::fit(PixelView image, Worker& worker, int64_t& height, int64_t& width,
                                         SampleRandom& random) const {
  const int64_t full_height = options_.data_shape[1], full_width = options_.data_shape[2];
  height = full_height, width = full_width;
  if (options_.resize_mode != "force") {
    double scale = std::min(static_cast<double>(full_height) / static_cast<double>(image.height),
                            static_cast<double>(full_width) / static_cast<double>(image.width));
    if (options_.resize_mode == "shrink") scale = std::min(scale, 1.);
    const auto side = [&](int64_t length, int64_t most) {
      return std::clamp<int64_t>(static_cast<int64_t>(scale * static_cast<double>(length) + 1e-6), 1, most);
    };
    height = side(image.height, full_height);
    width = side(image.width, full_width);
  }
  worker.fitted.resize(full_height, full_width, image.channels);
  if (height != full_height || width != full_width)
    std::memset(worker.fitted.data(), static_cast<int>(options_.fill_value), worker.fitted.bytes());
  auto to = mutable_view(worker.fitted);
  to.height = height;
  to.width = width;
  resize<uint8_t>(image, to, method(image, height, width, random));
  return worker.fitted.view();
}

void ImageDetRecordIter::Maker::color(Pixels& image, SampleRandom& random) const {
  const ImageDetRecordIterOptions& o = options_;
  if (image.channels() != 3) return;
  const auto amount = [&](int64_t most, float probability) {
    const bool chosen = random.unit() < probability;
    return chosen ? random.whole(-most, most) : 0;
  };
  const int64_t hue = amount(o.max_random_hue, o.random_hue_prob),
                saturation = amount(o.max_random_saturation, o.random_saturation_prob),
                light = amount(o.max_random_illumination, o.random_illumination_prob);
  if (hue != 0 || saturation != 0 || light != 0) add_hue_saturation_lightness(image, hue, saturation, light);
  if (random.unit() < o.random_contrast_prob)
    add_contrast(image, 1 + random.uniform(-o.max_random_contrast, o.max_random_contrast));
}

void ImageDetRecordIter::Maker::make(BatchJob& base, size_t sample, size_t number) {
  Job& job = static_cast<Job&>(base);
  Worker& worker = *workers_[number];
  const uint64_t offset = job.records.offsets[sample];
  read(worker.reader, offset, worker.record);
  try {
    const ImageRecord record = unpack_record(worker.record);
    job.batch.index[sample] = static_cast<int64_t>(record.header.id);
    const std::vector<float>& given = labels_of(record.header);
    const auto count = static_cast<int64_t>(given.size());
    require(options_.label_width < 0 || options_.label_width == count, "label_width is ", options_.label_width,
            ", but the record has ", count, " labels");
    Labels labels(given);
    decode_image(record.data, static_cast<int>(options_.data_shape[0]), worker.decoded);
    SampleRandom random(key(), job.records.epoch, job.records.first + sample);
    PixelView image = worker.decoded.view();
    if (const int64_t side = options_.resize; side > 0) {
      const int64_t height = image.height > image.width ? side * image.height / image.width : side;
      const int64_t width = image.height > image.width ? side : side * image.width / image.height;
      worker.resized.resize(height, width, image.channels);
      resize<uint8_t>(image, mutable_view(worker.resized), method(image, height, width, random));
      image = worker.resized.view();
    }
    int64_t height = 0, width = 0;
    fit(pad_and_crop(image, worker, labels, random), worker, height, width, random);
    color(worker.fitted, random);
    if (random.unit() < options_.rand_mirror_prob) {
      const auto part = worker.fitted.view().window(0, 0, height, width);
      for (int64_t y = 0; y < height; ++y)
        for (int64_t x = 0, c = part.channels; x < width / 2; ++x)
          std::swap_ranges(worker.fitted.row(y) + x * c, worker.fitted.row(y) + (x + 1) * c,
                           worker.fitted.row(y) + (width - 1 - x) * c);
      for (int64_t i = 0; i < labels.objects(); ++i) {
        const Box box = labels.box(i);
        labels.set_box(i, {1 - box.right, box.top, 1 - box.left, box.bottom});
      }
    }
    worker.augmenter.write(worker.fitted.view(), random,
                           job.images + sample * static_cast<size_t>(options_.data_shape.size()));
    float* const row = job.labels + sample * label_width_;
    std::fill_n(row, label_width_, options_.label_pad_value);
    row[0] = static_cast<float>(options_.data_shape[0]);
    row[1] = static_cast<float>(height);
    row[2] = static_cast<float>(width);
    row[3] = static_cast<float>(labels.values().size());
    std::copy(labels.values().begin(), labels.values().end(), row + front);
  } catch (const Error& error) {
    fail("[", path(), "] the record at offset ", offset, ": ", error.what());
  }
}

struct ImageDetRecordIter::State {
  explicit State(ImageDetRecordIterOptions given)
      : options(checked(std::move(given))), maker(options), epochs(maker, options, who) {}

  ImageDetRecordIterOptions options;
  Maker maker;
  RecordEpochs epochs;  // last: destroyed first, since its threads use the members above
};

ImageDetRecordIter::ImageDetRecordIter(ImageDetRecordIterOptions options)
    : state_(std::make_unique<State>(std::move(options))) {
  if (state_->options.verbose)
    log_info("[", who, "] ", state_->options.path_imgrec, ", in batches of shape ", provide_data()[0].shape,
             " with labels of ", provide_label()[0].shape);
}
ImageDetRecordIter::~ImageDetRecordIter() {
  if (!state_->epochs.in_this_process()) (void)state_.release();
}

std::vector<DataDesc> ImageDetRecordIter::provide_data() const {
  const ImageDetRecordIterOptions& o = state_->options;
  return {{.name = o.data_name, .shape = {o.batch_size, o.data_shape[0], o.data_shape[1], o.data_shape[2]}}};
}
std::vector<DataDesc> ImageDetRecordIter::provide_label() const {
  return {{.name = state_->options.label_name, .shape = {state_->options.batch_size, state_->maker.label_width()}}};
}
int64_t ImageDetRecordIter::batch_size() const { return state_->options.batch_size; }

void ImageDetRecordIter::reset() {
  const InUse use = in_use("reset");
  state_->epochs.reset();
}

void ImageDetRecordIter::begin_epoch() { state_->epochs.begin(state_->options.seed); }

std::optional<DataBatch> ImageDetRecordIter::next() {
  const InUse use = in_use("next");
  begin_epoch();
  const std::unique_ptr<BatchJob> job = state_->epochs.next();
  if (!job) return std::nullopt;
  return std::move(job->batch);
}

}  // namespace symbind
