#include "symbind/ops/boxes.h"

#include <limits>

#include "symbind/graph/define.h"
#include "symbind/ops/extents.h"
#include "symbind/ops/floating.h"

namespace symbind {
namespace {

constexpr int64_t most_boxes = std::numeric_limits<int32_t>::max();
constexpr const char* format_text = "'corner': (x1, y1, x2, y2); 'center': (x, y, width, height)";

void require_few(Shapes& s, const Inferred<Shape>& data) {
  require(!data.known() || data.get().size() <= most_boxes, s.where(), " too many boxes: data ", data.get());
}

// ---- box_nms --------------------------------------------------------------------------------------------------------

template <class P>
Op<P>& nms_fields(Op<P>& op) {
  return op
      .param(&BoxNMS::overlap_thresh, "overlap_thresh",
             "intersection over union above which the box of the lower score is dropped")
      .param(&BoxNMS::valid_thresh, "valid_thresh", "boxes with a score of this or less are dropped")
      .param(&BoxNMS::topk, "topk",
             "number of boxes with the highest scores that enter non-maximum suppression; the others are dropped; "
             "below 0: all; 0: the output is the input",
             between(-most_boxes, most_boxes))
      .param(&BoxNMS::coord_start, "coord_start", "index of the first of a box's four coordinates",
             between(0, most_boxes))
      .param(&BoxNMS::score_index, "score_index", "index of a box's score", between(0, most_boxes))
      .param(&BoxNMS::id_index, "id_index", "index of a box's class; below 0: there are no classes",
             between(-most_boxes, most_boxes))
      .param(&BoxNMS::background_id, "background_id", "boxes of this class are dropped, where there are classes",
             between(-most_boxes, most_boxes))
      .param(&BoxNMS::force_suppress, "force_suppress", "boxes of other classes drop each other too")
      .param(&BoxNMS::in_format, "in_format", join("coordinates of the input: ", format_text),
             one_of({"center", "corner"}))
      .param(&BoxNMS::out_format, "out_format", join("coordinates of the output: ", format_text),
             one_of({"center", "corner"}));
}

OpDef define(Op<BoxNMS> op) {
  return nms_fields(op)
      .doc(
          "Non-maximum suppression. data is (…, boxes, numbers of a box); by default a box is (class, score, x1, y1, "
          "x2, y2, …). The output has the same shape: the boxes that are left in descending order of their scores, "
          "then rows of -1. A gradient goes to the box that its row was taken from.")
      .aliases({"_contrib_box_non_maximum_suppression"})
      .precision(Precision::full)
      .outputs({"output0", "output1"})
      .visible_outputs([](const BoxNMS&) { return 1; })
      .infer_shape([](const BoxNMS& p, Shapes& s) {
        auto data = s["data"];
        data.meet(s.output(0));
        if (!data.rank_known()) return;
        require(data.rank() >= 2, s.where(), " data needs two or more axes: data ", data.get());
        const int64_t numbers = data[data.rank() - 1];
        require(numbers == unknown_dim || p.coord_start + 4 <= numbers, s.where(), " coord_start = ", p.coord_start,
                " leaves no four coordinates: data ", data.get());
        require(numbers == unknown_dim || (p.score_index < numbers && p.id_index < numbers), s.where(),
                " score_index = ", p.score_index, " and id_index = ", p.id_index, " must be below ", numbers, ": data ",
                data.get());
        require_few(s, data);
        s.output(1).meet(data.get().slice(0, data.rank() - 1));
      })
      .infer_type([](const BoxNMS&, Types& t) {
        t["data"].meet(t.output(0));
        t.output(0).meet(t["data"]);
        if (t["data"].known()) require_floating(t, "data", t["data"]);
        t.output(1).meet(DType::int32);
      })
      .gradient([](const BoxNMS& p, Grad& g) {
        g.set("data", box_nms_grad(g.out_grad(), g.output(1), g.input("data"), {p}));
      });
}

OpDef define(Op<BoxNMSGrad> op) {
  return nms_fields(op)
      .inputs({"out_grad", "output1", "data"})
      .shape_only({"data"})
      .infer_shape([](const BoxNMSGrad&, Shapes& s) { s.output().meet(s["data"].get()); })
      .shapes_of<BoxNMS>()
      .infer_type([](const BoxNMSGrad&, Types& t) { t.output().meet(t["out_grad"]); })
      .types_of<BoxNMS>();
}

// ---- box_iou --------------------------------------------------------------------------------------------------------

OpDef define(Op<BoxIOU> op) {
  return op
      .doc(
          "Intersection over union of boxes: lhs is (a…, 4), rhs (b…, 4), the output (a…, b…), of each box of lhs with "
          "each of rhs. Boxes without an area have the overlap 0. The gradients are zero.")
      .precision(Precision::full)
      .param(&BoxIOU::format, "format", join("coordinates: ", format_text), one_of({"center", "corner"}))
      .inputs({"lhs", "rhs"})
      .infer_shape([](const BoxIOU&, Shapes& s) {
        Shape result;
        bool known = true;
        for (const char* name : {"lhs", "rhs"}) {
          auto boxes = s[name];
          if (!boxes.rank_known()) {
            known = false;
            continue;
          }
          require(boxes.rank() >= 2, s.where(), " ", name, " needs two or more axes: ", name, " ", boxes.get());
          boxes.meet_dim(boxes.rank() - 1, 4);
          for (int axis = 0; axis + 1 < boxes.rank(); ++axis) result.push_back(boxes[axis]);
        }
        if (known) s.output().meet(result);
      })
      .infer_type([](const BoxIOU&, Types& t) { same_floating_type(t); })
      .gradient([](const BoxIOU&, Grad&) {});
}

// ---- bipartite_matching ---------------------------------------------------------------------------------------------

OpDef define(Op<BipartiteMatching> op) {
  return op
      .doc(
          "Matches rows with columns, the pairs of the best scores first, each row and column once. data is (…, rows, "
          "columns); the outputs are (…, rows), the column of each row, and (…, columns), the row of each column; -1: "
          "none. The gradient is zero.")
      .precision(Precision::full)
      .param(&BipartiteMatching::is_ascend, "is_ascend", "the best scores are the lowest")
      .param(&BipartiteMatching::threshold, "threshold",
             "pairs with a score of this or less (with is_ascend: or more) are not matched")
      .param(&BipartiteMatching::topk, "topk", "largest number of pairs; 0 or less: all",
             between(-most_boxes, most_boxes))
      .outputs({"output0", "output1"})
      .infer_shape([](const BipartiteMatching&, Shapes& s) {
        auto data = s["data"];
        if (!data.rank_known()) return;
        require(data.rank() >= 2, s.where(), " data needs two or more axes: data ", data.get());
        require_few(s, data);
        Shape rows = data.get().slice(0, data.rank() - 1), columns = data.get().slice(0, data.rank() - 2);
        columns.push_back(data[data.rank() - 1]);
        s.output(0).meet(rows);
        s.output(1).meet(columns);
      })
      .infer_type([](const BipartiteMatching&, Types& t) { same_floating_type(t); })
      .gradient([](const BipartiteMatching&, Grad&) {});
}

// ---- box_encode and box_decode --------------------------------------------------------------------------------------

OpDef define(Op<BoxEncode> op) {
  return op
      .doc(
          "Encodes the boxes that anchors are to learn. samples is (n, anchors), above 0.5 for anchors that learn; "
          "matches (n, anchors), the index of each anchor's box; anchors (n, anchors, 4) and refs (n, boxes, 4) are "
          "corners; means and stds (4). The outputs are (n, anchors, 4): offsets of the centre relative to the anchor "
          "and logarithms of the ratios of the sizes, less means, divided by stds; and 1 where they count, else both "
          "are 0. A match out of range counts as 0. The gradients are zero.")
      .precision(Precision::full)
      .inputs({"samples", "matches", "anchors", "refs", "means", "stds"})
      .outputs({"output0", "output1"})
      .infer_shape([](const BoxEncode&, Shapes& s) {
        auto samples = s["samples"], matches = s["matches"], anchors = s["anchors"], refs = s["refs"];
        anchors.meet({unknown_dim, unknown_dim, 4});
        samples.meet({anchors[0], anchors[1]});
        matches.meet({samples[0], samples[1]});
        refs.meet({matches[0], unknown_dim, 4});
        samples.meet({refs[0], matches[1]});
        anchors.meet({samples[0], samples[1], 4});
        s["means"].meet({4});
        s["stds"].meet({4});
        s.output(0).meet(anchors.get());
        s.output(1).meet(anchors.get());
        anchors.meet(s.output(0));
      })
      .infer_type([](const BoxEncode&, Types& t) { same_floating_type(t); })
      .gradient([](const BoxEncode&, Grad&) {});
}

OpDef define(Op<BoxDecode> op) {
  return op
      .doc(
          "Decodes boxes relative to anchors. data is (n, anchors, 4): offsets of the centre relative to the anchor "
          "and logarithms of the ratios of the sizes, which are multiplied by std0 … std3; anchors is (1, anchors, 4). "
          "The output is (n, anchors, 4), corners. The gradients are zero.")
      .precision(Precision::full)
      .param(&BoxDecode::std0, "std0", "factor of the offset across")
      .param(&BoxDecode::std1, "std1", "factor of the offset down")
      .param(&BoxDecode::std2, "std2", "factor of the logarithm of the width")
      .param(&BoxDecode::std3, "std3", "factor of the logarithm of the height")
      .param(&BoxDecode::clip, "clip", "largest logarithm of the width and height; 0 or less: any")
      .param(&BoxDecode::format, "format", join("coordinates of the anchors: ", format_text),
             one_of({"center", "corner"}))
      .inputs({"data", "anchors"})
      .infer_shape([](const BoxDecode&, Shapes& s) {
        auto data = s["data"], anchors = s["anchors"];
        data.meet({unknown_dim, unknown_dim, 4});
        data.meet(s.output());
        anchors.meet({1, data[1], 4});
        data.meet_dim(1, anchors[1]);
        s.output().meet(data.get());
      })
      .infer_type([](const BoxDecode&, Types& t) { same_floating_type(t); })
      .gradient([](const BoxDecode&, Grad&) {});
}

}  // namespace

void register_boxes(OpRegistry& registry) {
  add<BoxNMS>(registry, "_contrib_box_nms", define);
  add_internal<BoxNMSGrad>(registry, "_backward_contrib_box_nms", define);
  add<BoxIOU>(registry, "_contrib_box_iou", define);
  add<BipartiteMatching>(registry, "_contrib_bipartite_matching", define);
  add<BoxEncode>(registry, "_contrib_box_encode", define);
  add<BoxDecode>(registry, "_contrib_box_decode", define);
}

}  // namespace symbind
