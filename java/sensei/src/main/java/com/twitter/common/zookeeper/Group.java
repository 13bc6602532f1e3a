package com.twitter.common.zookeeper;

/** Stands where Twitter's library is not: Sensei names its exception, and nothing throws it. */
public interface Group {
  /** A cluster could not be joined. */
  class JoinException extends Exception {
    private static final long serialVersionUID = 1L;

    public JoinException(String message, Throwable cause) {
      super(message, cause);
    }
  }
}
