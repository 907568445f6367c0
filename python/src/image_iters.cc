// The iterators over RecordIO files of images.
#include "symbind/data/image_det_record_iter.h"
#include "symbind/data/image_record_iter.h"

#include "bindings.h"
#include "def_iterator.h"
#include "keywords.h"

namespace symbind::python {
namespace {

// What both iterators take.
template <class O>
Keywords<O> record_keywords(const char* who) {
  Keywords<O> keywords(who);
  keywords.add("path_imgrec", &O::path_imgrec)
      .add("path_imgidx", &O::path_imgidx)
      .add("path_imglist", &O::path_imglist)
      .add("data_shape", &O::data_shape)
      .add("label_width", &O::label_width)
      .add("batch_size", &O::batch_size)
      .add("shuffle", &O::shuffle)
      .add("seed", &O::seed)
      .add("shuffle_chunk_size", &O::shuffle_chunk_size)
      .add("preprocess_threads", &O::preprocess_threads)
      .add("prefetch_buffer", &O::prefetch_buffer)
      .add("num_parts", &O::num_parts)
      .add("part_index", &O::part_index)
      .add("round_batch", &O::round_batch)
      .add("verbose", &O::verbose)
      .add("data_name", &O::data_name)
      .add("label_name", &O::label_name)
      .add("resize", &O::resize)
      .add("fill_value", &O::fill_value)
      .add("inter_method", &O::inter_method)
      .add("mean_r", &O::mean_r)
      .add("mean_g", &O::mean_g)
      .add("mean_b", &O::mean_b)
      .add("std_r", &O::std_r)
      .add("std_g", &O::std_g)
      .add("std_b", &O::std_b)
      .add("scale", &O::scale)
      .add("max_random_illumination", &O::max_random_illumination)
      .add("max_random_contrast", &O::max_random_contrast)
      .ignore({"ctx", "device_id", "shuffle_chunk_seed", "aug_seq"});
  return keywords;
}

Keywords<ImageRecordIterOptions> image_keywords() {
  using O = ImageRecordIterOptions;
  Keywords<O> keywords = record_keywords<O>("ImageRecordIter");
  keywords.add("seed_aug", &O::seed_aug)
      .add("normalize_on_device", &O::normalize_on_device)
      .add("skip_bad_images", &O::skip_bad_images)
      .add("dtype",
           [](O& to, nb::handle value) {
             if (!value.is_none()) to.dtype = dtype_from(value);
           })
      .add("mean_image",
           [](O& to, nb::handle value) {
             if (!value.is_none()) to.mean_image = nb::cast<NDArray>(value);
           })
      .add("rand_crop", &O::rand_crop)
      .add("random_resized_crop", &O::random_resized_crop)
      .add("max_rotate_angle", &O::max_rotate_angle)
      .add("rotate", &O::rotate)
      .add("max_aspect_ratio", &O::max_aspect_ratio)
      .add("min_aspect_ratio", &O::min_aspect_ratio)
      .add("max_shear_ratio", &O::max_shear_ratio)
      .add("max_crop_size", &O::max_crop_size)
      .add("min_crop_size", &O::min_crop_size)
      .add("max_random_scale", &O::max_random_scale)
      .add("min_random_scale", &O::min_random_scale)
      .add("max_random_area", &O::max_random_area)
      .add("min_random_area", &O::min_random_area)
      .add("max_img_size", &O::max_img_size)
      .add("min_img_size", &O::min_img_size)
      .add("brightness", &O::brightness)
      .add("contrast", &O::contrast)
      .add("saturation", &O::saturation)
      .add("pca_noise", &O::pca_noise)
      .add("random_h", &O::random_h)
      .add("random_s", &O::random_s)
      .add("random_l", &O::random_l)
      .add("pad", &O::pad)
      .add("mirror", &O::mirror)
      .add("rand_mirror", &O::rand_mirror)
      .add("mean_a", &O::mean_a)
      .add("std_a", &O::std_a);
  return keywords;
}

Keywords<ImageDetRecordIterOptions> detection_keywords() {
  using O = ImageDetRecordIterOptions;
  Keywords<O> keywords = record_keywords<O>("ImageDetRecordIter");
  keywords.add("label_pad_width", &O::label_pad_width)
      .add("label_pad_value", &O::label_pad_value)
      .add("rand_crop_prob", &O::rand_crop_prob)
      .add("num_crop_sampler", &O::num_crop_sampler)
      .add("min_crop_scales", &O::min_crop_scales)
      .add("max_crop_scales", &O::max_crop_scales)
      .add("min_crop_aspect_ratios", &O::min_crop_aspect_ratios)
      .add("max_crop_aspect_ratios", &O::max_crop_aspect_ratios)
      .add("min_crop_overlaps", &O::min_crop_overlaps)
      .add("max_crop_overlaps", &O::max_crop_overlaps)
      .add("min_crop_sample_coverages", &O::min_crop_sample_coverages)
      .add("max_crop_sample_coverages", &O::max_crop_sample_coverages)
      .add("min_crop_object_coverages", &O::min_crop_object_coverages)
      .add("max_crop_object_coverages", &O::max_crop_object_coverages)
      .add("max_crop_trials", &O::max_crop_trials)
      .add("crop_emit_mode", &O::crop_emit_mode)
      .add("emit_overlap_thresh", &O::emit_overlap_thresh)
      .add("rand_pad_prob", &O::rand_pad_prob)
      .add("max_pad_scale", &O::max_pad_scale)
      .add("max_random_hue", &O::max_random_hue)
      .add("max_random_saturation", &O::max_random_saturation)
      .add("random_hue_prob", &O::random_hue_prob)
      .add("random_saturation_prob", &O::random_saturation_prob)
      .add("random_illumination_prob", &O::random_illumination_prob)
      .add("random_contrast_prob", &O::random_contrast_prob)
      .add("rand_mirror_prob", &O::rand_mirror_prob)
      .add("resize_mode", &O::resize_mode)
      .ignore({"mean_a", "std_a", "dtype", "mean_img"});
  return keywords;
}

// One object for the keyword arguments of a class.
template <class Iter, class Options>
void def_image_iterator(nb::class_<Iter, DataIter>& type, const Keywords<Options>& keywords) {
  type.def("__init__", [keywords, who = std::string(nb::type_name(type).c_str())](Iter* self, nb::kwargs given) {
    for (const char* name : {"path_imgrec", "data_shape", "batch_size"})
      if (!given.contains(name)) throw TypeError(join(who, " needs the argument ", name));
    const Options options = keywords.from(given);
    const ReleaseGil release;
    new (self) Iter(options);
  });
  def_iterator(type, BatchParts::as_arrays);
}

}  // namespace

void bind_image_iters(nb::module_& m) {
  nb::class_<ImageRecordIter, DataIter> type(m, "ImageRecordIter", nb::dynamic_attr(),
                                             "Batches of images from a RecordIO file, decoded and augmented on threads "
                                             "of their own.");
  def_image_iterator(type, image_keywords());
  nb::class_<ImageDetRecordIter, DataIter> detection(m, "ImageDetRecordIter", nb::dynamic_attr(),
                                                     "Batches of images with objects in boxes, from a RecordIO file.");
  def_image_iterator(detection, detection_keywords());
}

}  // namespace symbind::python
