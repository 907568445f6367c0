// The networks that programs train, each a function that builds its symbol. All read `data` and end in `softmax`.
#pragma once

#include "examples/support/networks/alexnet.h"
#include "examples/support/networks/densenet.h"
#include "examples/support/networks/inception_bn.h"
#include "examples/support/networks/inception_v3.h"
#include "examples/support/networks/lenet.h"
#include "examples/support/networks/mlp.h"
#include "examples/support/networks/mobilenet.h"
#include "examples/support/networks/mobilenet_v2.h"
#include "examples/support/networks/resnet.h"
#include "examples/support/networks/resnext.h"
#include "examples/support/networks/squeezenet.h"
#include "examples/support/networks/vgg.h"
