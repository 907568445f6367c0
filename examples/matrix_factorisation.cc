// Recommendation by matrix factorisation: a rating is the product of a vector per user and a vector per item.
#include <algorithm>
#include <cmath>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <memory>
#include <numeric>
#include <random>
#include <sstream>
#include <string>
#include <vector>

#include "symbind/symbind.h"

#include "examples/support/options.h"

using namespace symbind;

namespace {

struct Program {
  std::string data;
  int64_t factors = 8, users = 200, items = 100, ratings = 10000, epochs = 15, batch_size = 100;
  double lr = 0.01, wd = 1e-4;
};

// One entry per rating; users and items are numbered from 0.
struct Ratings {
  std::vector<float> user = {}, item = {}, score = {};
  int64_t users = 0, items = 0;
};

// Lines of user, item and rating with blanks between them, and whatever follows: MovieLens' u.data.
Ratings read_ratings(const std::string& path) {
  std::ifstream file(path);
  require(file.good(), "cannot read ", path);
  Ratings all;
  std::map<int64_t, int64_t> users, items;  // their numbers in the file → ours
  const auto number = [](std::map<int64_t, int64_t>& known, int64_t id) {
    return static_cast<float>(known.emplace(id, static_cast<int64_t>(known.size())).first->second);
  };
  int line_number = 0;
  for (std::string line; std::getline(file, line);) {
    ++line_number;
    int64_t user = 0, item = 0;
    float score = 0;
    require(static_cast<bool>(std::istringstream(line) >> user >> item >> score), path, ":", line_number,
            ": user, item and rating are expected: ", line);
    all.user.push_back(number(users, user));
    all.item.push_back(number(items, item));
    all.score.push_back(score);
  }
  all.users = static_cast<int64_t>(users.size());
  all.items = static_cast<int64_t>(items.size());
  return all;
}

// Ratings from 1 to 5 that follow from tastes in three dimensions, and some noise.
Ratings made_up_ratings(const Program& program, std::mt19937& random) {
  constexpr size_t dimensions = 3;
  std::normal_distribution<double> normal;
  const auto vectors = [&](int64_t count) {
    std::vector<double> values(static_cast<size_t>(count) * dimensions);
    for (double& value : values) value = normal(random);
    return values;
  };
  const std::vector<double> tastes = vectors(program.users), traits = vectors(program.items);
  std::vector<int64_t> pairs(static_cast<size_t>(program.users * program.items));
  std::iota(pairs.begin(), pairs.end(), 0);
  std::shuffle(pairs.begin(), pairs.end(), random);
  pairs.resize(std::min(pairs.size(), static_cast<size_t>(program.ratings)));
  Ratings all{.users = program.users, .items = program.items};
  for (const int64_t pair : pairs) {
    const int64_t user = pair / program.items, item = pair % program.items;
    const double* taste = tastes.data() + static_cast<size_t>(user) * dimensions;
    const double match =
        std::inner_product(taste, taste + dimensions, &traits[static_cast<size_t>(item) * dimensions], 0.0);
    const double score = 3 + 0.6 * match + 0.2 * normal(random);
    all.user.push_back(static_cast<float>(user));
    all.item.push_back(static_cast<float>(item));
    all.score.push_back(static_cast<float>(std::clamp(std::round(score * 2) / 2, 1.0, 5.0)));
  }
  return all;
}

Symbol network(const Ratings& ratings, int64_t factors) {
  const auto embedded = [&](const std::string& name, int64_t count) {
    return embedding(Symbol::variable(name), {.input_dim = count, .output_dim = factors}, name + "_embed");
  };
  const Symbol product = embedded("user", ratings.users) * embedded("item", ratings.items);
  return linear_regression_output(sum(product, {.axis = {1}, .keepdims = true}), Symbol::variable("score"), {},
                                  "rating");
}

double mean_of(const std::vector<float>& values) {
  return std::accumulate(values.begin(), values.end(), 0.0) / static_cast<double>(values.size());
}

void run(const Program& program) {
  seed(1);
  std::mt19937 random(1);
  const Ratings all = program.data.empty() ? made_up_ratings(program, random) : read_ratings(program.data);
  require(all.score.size() >= 10, "there are ", all.score.size(), " ratings: 10 are needed");
  std::cout << all.score.size() << " ratings by " << all.users << " users of " << all.items << " items\n";

  std::vector<size_t> order(all.score.size());
  std::iota(order.begin(), order.end(), size_t{0});
  std::shuffle(order.begin(), order.end(), random);
  const size_t split = order.size() * 9 / 10;
  const double mean = mean_of(all.score);
  const auto part = [&](size_t begin, size_t end, bool shuffle) {
    std::vector<float> user, item, score;
    for (size_t i = begin; i < end; ++i) {
      user.push_back(all.user[order[i]]);
      item.push_back(all.item[order[i]]);
      score.push_back(all.score[order[i]] - static_cast<float>(mean));
    }
    const auto count = static_cast<int64_t>(score.size());
    return NDArrayIter({{"user", array(user, {count})}, {"item", array(item, {count})}},
                       {{"score", array(score, {count, 1})}}, {.batch_size = program.batch_size, .shuffle = shuffle});
  };
  NDArrayIter train = part(0, split, true), unseen = part(split, order.size(), false);

  Module module(network(all, program.factors), {.data_names = {"user", "item"}, .label_names = {"score"}});
  const int64_t batches = (train.num_data() + program.batch_size - 1) / program.batch_size;
  module.fit(train, {.eval_data = &unseen,
                     .eval_metric = "rmse",
                     .batch_end_callback = {ProgressBar(batches, 40)},
                     .optimizer = optim::Adam{.learning_rate = program.lr, .wd = program.wd},
                     .initializer = std::make_shared<init::Normal>(0.2),
                     .num_epoch = static_cast<int>(program.epochs)});
  double squares = 0;
  const std::vector<float> scores = unseen.label()[0].array.to_vector<float>();
  for (const float score : scores) squares += score * score;
  std::cout << "Unseen ratings are off by " << std::fixed << std::setprecision(3)
            << module.score(unseen, "rmse")[0].second << "; the mean of all is off by "
            << std::sqrt(squares / static_cast<double>(scores.size())) << ".\n";
}

}  // namespace

int main(int argc, char** argv) {
  return examples::run_program("matrix_factorisation", [&] {
    Program program;
    examples::Options options("matrix_factorisation",
                              "Learns a vector per user and per item whose product is the user's rating of the item.");
    options.add("--data", program.data, "a file of ratings, as MovieLens' u.data; made-up ones without it", "FILE")
        .add("--factors", program.factors, "the length of the vectors")
        .add("--num-users", program.users, "of made-up ratings")
        .add("--num-items", program.items, "of made-up ratings")
        .add("--num-ratings", program.ratings, "of made-up ratings", 10)
        .add("--epochs", program.epochs, "how often every rating is seen")
        .add("--batch-size", program.batch_size, "ratings a step")
        .add("--lr", program.lr, "the learning rate")
        .add("--wd", program.wd, "weight decay");
    options.parse(argc, argv);
    run(program);
  });
}
