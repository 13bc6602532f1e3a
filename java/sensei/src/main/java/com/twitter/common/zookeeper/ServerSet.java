package com.twitter.common.zookeeper;

/** Stands where Twitter's library is not: Sensei names its exception, and nothing throws it. */
public interface ServerSet {
  /** Membership could not be given up. */
  class UpdateException extends Exception {
    private static final long serialVersionUID = 1L;

    public UpdateException(String message) {
      super(message);
    }
  }
}
