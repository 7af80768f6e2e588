"""Train LeNet with Gluon on record files of small grey images.

    python train_digits.py --data-train digits_train.rec --data-val digits_val.rec
"""
import argparse
import logging

import mxnet as mx
from mxnet import autograd, gluon
from mxnet.gluon import nn


def lenet(classes):
    """The network of LeCun et al., "Gradient-based learning applied to document recognition" (1998), with max pooling."""
    net = nn.HybridSequential()
    with net.name_scope():
        net.add(nn.Conv2D(20, kernel_size=5, activation="tanh"), nn.MaxPool2D(2, 2),
                nn.Conv2D(50, kernel_size=5, activation="tanh"), nn.MaxPool2D(2, 2),
                nn.Flatten(), nn.Dense(500, activation="tanh"), nn.Dense(classes))
    return net


def accuracy(net, images):
    """The accuracy of the network on the images."""
    metric = mx.metric.Accuracy()
    images.reset()
    for batch in images:
        valid = batch.data[0].shape[0] - batch.pad
        metric.update([batch.label[0][:valid]], [net(batch.data[0])[:valid]])
    return metric.get()[1]


def train(data_train, data_val, batch_size=64, num_epochs=10, lr=0.05, classes=10):
    """Train and return the network and its accuracy on the validation images."""
    def images(path, shuffle):
        return mx.io.ImageRecordIter(path_imgrec=path, data_shape=(1, 28, 28), batch_size=batch_size, shuffle=shuffle, scale=1 / 255)

    training, validation = images(data_train, True), images(data_val, False)
    net = lenet(classes)
    net.initialize(mx.init.Xavier())
    net.hybridize()
    trainer = gluon.Trainer(net.collect_params(), "sgd", {"learning_rate": lr, "momentum": 0.9})
    last_epochs = num_epochs - num_epochs // 3
    loss_function = gluon.loss.SoftmaxCrossEntropyLoss()
    for epoch in range(num_epochs):
        training.reset()
        if epoch == last_epochs:
            trainer.set_learning_rate(lr / 10)
        total, count = 0.0, 0
        for batch in training:
            with autograd.record():
                loss = loss_function(net(batch.data[0]), batch.label[0])
            loss.backward()
            trainer.step(batch_size)
            total, count = total + loss.sum().asscalar(), count + batch_size
        logging.info("Epoch[%d] Train-loss=%f Validation-accuracy=%f", epoch, total / count, accuracy(net, validation))
    return net, accuracy(net, validation)


def main():
    """Parse the options and train."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--data-train", required=True, help="record file of the training images")
    parser.add_argument("--data-val", required=True, help="record file of the validation images")
    parser.add_argument("--batch-size", type=int, default=64, help="images of a batch")
    parser.add_argument("--num-epochs", type=int, default=10, help="passes over the training images")
    parser.add_argument("--lr", type=float, default=0.05, help="learning rate")
    parser.add_argument("--save", help="file for the parameters")
    args = parser.parse_args()
    net, final = train(args.data_train, args.data_val, args.batch_size, args.num_epochs, args.lr)
    print(f"Gluon validation accuracy: {final:.4f}")
    if args.save:
        net.save_parameters(args.save)


if __name__ == "__main__":
    logging.basicConfig(level=logging.INFO)
    main()
