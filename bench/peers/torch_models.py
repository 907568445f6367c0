"""The networks of the benchmark in PyTorch, shared by its CPU and GPU scripts."""

import torch
from torch import nn

CLASSES = 10


def mlp():
    return nn.Sequential(nn.Linear(784, 128), nn.ReLU(), nn.Linear(128, 64), nn.ReLU(), nn.Linear(64, CLASSES))


def lenet():
    return nn.Sequential(
        nn.Conv2d(1, 20, 5),
        nn.Tanh(),
        nn.MaxPool2d(2, 2),
        nn.Conv2d(20, 50, 5),
        nn.Tanh(),
        nn.MaxPool2d(2, 2),
        nn.Flatten(),
        nn.Linear(800, 500),
        nn.Tanh(),
        nn.Linear(500, CLASSES),
    )


class Unit(nn.Module):
    """A bottleneck of ResNet v2: what is normalised and activated is convolved, and the input is added."""

    def __init__(self, channels, filters, stride):
        super().__init__()
        inner = filters // 4
        self.norm1 = nn.BatchNorm2d(channels, eps=2e-5)
        self.conv1 = nn.Conv2d(channels, inner, 1, bias=False)
        self.norm2 = nn.BatchNorm2d(inner, eps=2e-5)
        self.conv2 = nn.Conv2d(inner, inner, 3, stride, 1, bias=False)
        self.norm3 = nn.BatchNorm2d(inner, eps=2e-5)
        self.conv3 = nn.Conv2d(inner, filters, 1, bias=False)
        self.shortcut = nn.Conv2d(channels, filters, 1, stride, bias=False) if channels != filters else None
        self.relu = nn.ReLU(inplace=True)

    def forward(self, data):
        start = self.relu(self.norm1(data))
        body = self.conv1(start)
        body = self.conv2(self.relu(self.norm2(body)))
        body = self.conv3(self.relu(self.norm3(body)))
        return body + (data if self.shortcut is None else self.shortcut(start))


class UnitV1(nn.Module):
    """A bottleneck of ResNet v1.5: normalised after each convolution; the 3x3 one has the stride."""

    def __init__(self, channels, filters, stride):
        super().__init__()
        inner = filters // 4
        self.body = nn.Sequential(
            conv_norm_relu(channels, inner, 1),
            conv_norm_relu(inner, inner, 3, 1, stride),
            *conv_norm_relu(inner, filters, 1)[:2],
        )
        self.shortcut = conv_norm_relu(channels, filters, 1, 0, stride)[:2] if channels != filters else nn.Identity()
        self.relu = nn.ReLU(inplace=True)

    def forward(self, data):
        return self.relu(self.body(data) + self.shortcut(data))


def residual_units(unit):
    """The sixteen units of ResNet-50."""
    channels = 64
    for stage, units in enumerate((3, 4, 6, 3)):
        filters = 256 << stage
        for number in range(units):
            yield unit(channels, filters, 2 if number == 0 and stage > 0 else 1)
            channels = filters


def resnet50():
    """The network of examples/support/networks/resnet.h: version 2, the data normalised first."""
    first = nn.BatchNorm2d(3, eps=2e-5)
    first.weight.requires_grad = False
    last = [nn.BatchNorm2d(2048, eps=2e-5), nn.ReLU(inplace=True), nn.AdaptiveAvgPool2d(1), nn.Flatten()]
    stem = [*conv_norm_relu(3, 64, 7, 3, 2), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(first, *stem, *residual_units(Unit), *last, nn.Linear(2048, 1000))


def resnet50_v1():
    """Version 1.5, as torchvision has it."""
    stem = [*conv_norm_relu(3, 64, 7, 3, 2), nn.MaxPool2d(3, 2, 1)]
    return nn.Sequential(*stem, *residual_units(UnitV1), nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2048, 1000))


def conv_norm_relu(channels, filters, kernel, pad=0, stride=1):
    conv = nn.Conv2d(channels, filters, kernel, stride, pad, bias=False)
    return nn.Sequential(conv, nn.BatchNorm2d(filters, eps=2e-5), nn.ReLU(inplace=True))


class Towers(nn.Module):
    """Branches whose results are concatenated."""

    def __init__(self, *towers):
        super().__init__()
        self.towers = nn.ModuleList(towers)

    def forward(self, data):
        return torch.cat([tower(data) for tower in self.towers], 1)


class Residual(nn.Module):
    """Branches, a convolution back to the width of the data, and a scaled sum."""

    def __init__(self, towers, width, filters, scale, relu=True):
        super().__init__()
        self.towers, self.up = Towers(*towers), nn.Conv2d(width, filters, 1)
        self.scale, self.relu = scale, nn.ReLU(inplace=True) if relu else nn.Identity()

    def forward(self, data):
        return self.relu(data + self.up(self.towers(data)) * self.scale)


def inception_resnet():
    """The network of bench/train_step.cc: as published, but for widths that are no multiple of a vector."""
    conv = conv_norm_relu

    def halved():
        return nn.MaxPool2d(3, 2)

    def chain(*layers):
        return nn.Sequential(*layers)

    def block35():
        deep = chain(conv(320, 32, 1), conv(32, 48, 3, 1), conv(48, 64, 3, 1))
        return Residual([conv(320, 32, 1), chain(conv(320, 32, 1), conv(32, 32, 3, 1)), deep], 128, 320, 0.17)

    def block17():
        deep = chain(conv(1154, 129, 1), conv(129, 160, (1, 7), (0, 3)), conv(160, 192, (7, 1), (3, 0)))
        return Residual([conv(1154, 192, 1), deep], 384, 1154, 0.1)

    def block8(relu):
        deep = chain(conv(2146, 192, 1), conv(192, 224, (1, 3), (0, 1)), conv(224, 256, (3, 1), (1, 0)))
        return Residual([conv(2146, 192, 1), deep], 448, 2146, 0.2, relu)

    stem = [
        conv(3, 32, 3, 0, 2),
        conv(32, 32, 3),
        conv(32, 64, 3, 1),
        halved(),
        conv(64, 80, 1),
        conv(80, 192, 3),
        halved(),
    ]
    first = Towers(
        conv(192, 96, 1),
        chain(conv(192, 48, 1), conv(48, 64, 5, 2)),
        chain(conv(192, 64, 1), conv(64, 96, 3, 1), conv(96, 96, 3, 1)),
        chain(nn.AvgPool2d(3, 1, 1), conv(192, 64, 1)),
    )
    second = Towers(
        conv(320, 450, 3, 0, 2), chain(conv(320, 256, 1), conv(256, 256, 3, 1), conv(256, 384, 3, 0, 2)), halved()
    )
    third = Towers(
        chain(
            conv(1154, 256, 1),
            Towers(
                conv(256, 384, 3, 0, 2), conv(256, 288, 3, 0, 2), chain(conv(256, 288, 3, 1), conv(288, 320, 3, 0, 2))
            ),
        ),
        halved(),
    )
    return nn.Sequential(
        *stem,
        first,
        *[block35() for _ in range(10)],
        second,
        *[block17() for _ in range(20)],
        third,
        *[block8(number < 9) for number in range(10)],
        conv(2146, 1536, 1),
        nn.AdaptiveAvgPool2d(1),
        nn.Flatten(),
        nn.Linear(1536, 1000),
    )


def text_cnn():
    """Sentences of 56 words of 300 numbers each; kernels over three to five whole words."""
    towers = [
        nn.Sequential(nn.Conv2d(1, 100, (length, 300)), nn.ReLU(inplace=True), nn.MaxPool2d((56 - length + 1, 1)))
        for length in (3, 4, 5)
    ]
    return nn.Sequential(Towers(*towers), nn.Flatten(), nn.Dropout(0.5), nn.Linear(300, 2))


class LanguageModel(nn.Module):
    """The next word at each step of a sentence."""

    def __init__(self, words=10000, hidden=200, layers=2):
        super().__init__()
        self.embedding = nn.Embedding(words, hidden)
        self.lstm = nn.LSTM(hidden, hidden, layers, batch_first=True)
        self.prediction = nn.Linear(hidden, words)

    def forward(self, data):
        return self.prediction(self.lstm(self.embedding(data))[0]).flatten(0, 1)


# The network, the shape of a sample, the classes, the batch.
CASES = {
    "mlp-train": (mlp, (784,), CLASSES, 64),
    "lenet-train": (lenet, (1, 28, 28), CLASSES, 64),
    "lstm-train": (LanguageModel, (35,), 10000, 32),
    "lstm650-train": (lambda: LanguageModel(hidden=650), (35,), 10000, 64),
    "resnet50-train": (resnet50, (3, 224, 224), 1000, 32),
    "resnet50-infer": (resnet50, (3, 224, 224), 1000, 32),
    "resnet50-infer-b1": (resnet50, (3, 224, 224), 1000, 1),
    "resnet50v1-train": (resnet50_v1, (3, 224, 224), 1000, 32),
    "resnet50v1-infer": (resnet50_v1, (3, 224, 224), 1000, 32),
    "resnet50v1-infer-b1": (resnet50_v1, (3, 224, 224), 1000, 1),
    "inception-resnet-v2-infer": (inception_resnet, (3, 299, 299), 1000, 2),
    "text-cnn-train": (text_cnn, (1, 56, 300), 2, 50),
}
OF_WORDS = {"lstm-train", "lstm650-train"}  # data and label are numbers of words, one label for each


def model_and_data(case, device, batch, channels_last):
    torch.manual_seed(0)
    make_model, sample_shape, classes, usual_batch = CASES[case]
    model = make_model().to(device)
    shape = (batch or usual_batch, *sample_shape)
    words = case in OF_WORDS
    data = torch.randint(0, classes, shape, device=device) if words else torch.randn(*shape, device=device)
    if channels_last:
        model = model.to(memory_format=torch.channels_last)
        data = data.to(memory_format=torch.channels_last)
    return model, data


def as_it_is(model):
    return model


def training_step(
    case, device, batch=None, channels_last=False, dtype=torch.float32, compiled=as_it_is, **optimizer_options
):
    """A function that runs one whole step (forward, backward, SGD with momentum and weight decay), and its batch. In 16
    bits by autocast, in float16 with a scaled loss too."""
    model, data = model_and_data(case, device, batch, channels_last)
    model.train()
    batch, classes = data.shape[0], CASES[case][2]
    labels = data.numel() if case in OF_WORDS else batch
    label = torch.randint(0, classes, (labels,), device=device)
    loss = nn.CrossEntropyLoss()
    parameters = [parameter for parameter in model.parameters() if parameter.requires_grad]
    optimizer = torch.optim.SGD(parameters, lr=0.01, momentum=0.9, weight_decay=1e-4, **optimizer_options)
    precision = torch.autocast(device, dtype=dtype, enabled=dtype != torch.float32)
    scaler = torch.amp.GradScaler(device) if dtype == torch.float16 else None
    model = compiled(model)

    def step():
        optimizer.zero_grad(set_to_none=True)
        with precision:
            error = loss(model(data), label)
        if scaler:
            scaler.scale(error).backward()
            scaler.step(optimizer)
            scaler.update()
        else:
            error.backward()
            optimizer.step()

    return step, batch


def prediction(case, device, batch=None, channels_last=False, dtype=torch.float32, compiled=as_it_is):
    """A function that computes the outputs of a batch, and that batch. Parameters and data are of the given type."""
    model, data = model_and_data(case, device, batch, channels_last)
    model = compiled(model.eval().to(dtype))
    if case not in OF_WORDS:
        data = data.to(dtype)

    def step():
        with torch.inference_mode():
            model(data).cpu()

    return step, data.shape[0]
